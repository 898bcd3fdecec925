// Imported by what measures one thread: the number of threads is read when the first tensor is made.
process.env.TENSORFX_NUM_THREADS ??= '1'
