// Where things happen in the user's program: captured stack traces, their frames, and the source around them.
export { captureStack, CapturedStack, deepenStacks, restoreStacks } from './stack.ts'
export { parseStack } from './frame.ts'
export type { Frame } from './frame.ts'
export { codeFrame, isOwn, sourceLine } from './codeFrame.ts'
export { programFirst } from './programFirst.ts'
