"""What all readers of datasets share: files, fields, counts, reasons."""
