/** The broker didn't do what a feature needs. */
final class Missing extends RuntimeException {
    Missing(String what) {
        super(what);
    }

    static void require(boolean holds, String missing) {
        if (!holds) {
            throw new Missing(missing);
        }
    }
}
