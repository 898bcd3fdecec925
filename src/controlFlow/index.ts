// Control flow as data: branches and loops on values that graphs can hold. PyTorch's torch.cond and torch._higher_order_ops.
export { cond, condOp } from './cond.ts'
export { whileLoop, whileLoopOp } from './whileLoop.ts'
export { scan, scanOp } from './scan.ts'
export type { ScanOptions } from './scan.ts'
export { map, mapOp } from './map.ts'
export type { Body } from './higherOrder.ts'
