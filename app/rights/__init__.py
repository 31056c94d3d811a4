"""The least rights that the job needs: a table, what a flow needs of it, and what of that is there."""
