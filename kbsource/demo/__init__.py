"""The embedded mini-wiki: a small invented encyclopaedia in the forms that real dumps have."""
