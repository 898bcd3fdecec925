// TENSORFX_CHECK_HEAP=1: every test runs on a heap that notices writes outside tensors, memory that is used after it was freed, and launches of kernels that
// would leave their blocks. After each test the whole heap is looked at.
import { afterEach } from 'vitest'
import { checkHeap } from '../../src/kernels/memory/heapCheck.ts'

const heap = checkHeap()
afterEach(() => heap.verify())
