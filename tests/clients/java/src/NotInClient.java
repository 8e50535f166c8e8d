/** The client has no such feature. */
final class NotInClient extends RuntimeException {
    NotInClient(String what) {
        super(what);
    }

    static void unless(boolean holds, String what) {
        if (!holds) {
            throw new NotInClient(what);
        }
    }
}
