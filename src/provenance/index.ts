export { captureStack, CapturedStack, deepenStacks, parseStack, restoreStacks } from './stack.ts'
export type { Frame } from './stack.ts'
export { codeFrame, sourceLine } from './codeFrame.ts'
