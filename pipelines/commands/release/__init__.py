"""Commands that read a release: what it holds, whether it is as it was written, which templates lose text."""
