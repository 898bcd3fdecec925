// What a rank does at its end, when nothing can be waited for any more.

/** Waits without events. */
export const sleep = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

/** How often a full pipe is tried again, a millisecond later each time. */
const TRIES = 1000

/** Writes text to a file descriptor of Node before it returns. What a closed pipe cannot take is lost. */
export function writeNow(descriptor: number, text: string): void {
  const fs = globalThis.process?.getBuiltinModule?.('node:fs')
  if (fs === undefined) return
  const bytes = new TextEncoder().encode(text)
  for (let at = 0, tries = 0; at < bytes.length && tries < TRIES;) {
    try {
      at += fs.writeSync(descriptor, bytes, at)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) return
      tries++
      sleep(1)
    }
  }
}
