"""`allot top`: a cluster in a terminal, live. Only this package imports Textual.

app               the application: views, keys, and when what is drawn again
cluster_source    the cluster that is shown: one that is followed, or one that does not change
floor_plan        nodes and their devices as a grid: which cell is where
floor_plan_view   the widget that draws the grid
row_table         the widget that draws tables; only visible rows are rendered
listings          the rows of tables: devices, pods, claims, causes, events
explanations      why a pod or claim is in its state, as text
detail_screens    an explanation, a device, the keys: full screen
state_symbols     the letters, symbols and colors of device states
"""
