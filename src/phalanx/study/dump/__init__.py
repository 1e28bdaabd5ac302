"""Stack Exchange's public dump, read at the speed of its decompression."""
