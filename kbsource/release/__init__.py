"""The release on disk: layout, writer, manifest, verification and reader."""
