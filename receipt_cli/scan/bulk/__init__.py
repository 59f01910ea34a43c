"""Fast path of the scan: the records of a block that have a known layout are read together, as arrays.

In: whole records (bytes). Out: the body of the block. ``LayoutCache`` keeps the layouts, ``Schedule`` decides what is
read in bulk, ``BulkReader.read_block`` reads it.

Law: the body is the one that the patterns give record by record, to the last bit. ``scan.engine`` alone imports this
package.
"""

PUBLIC = {"BulkReader": "reader", "LayoutCache": "layout_cache", "Schedule": "schedule"}
