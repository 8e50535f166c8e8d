"""Record batches: the 61-byte header, the records behind it, their compression and their checksum."""
