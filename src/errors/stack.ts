// The stack traces of errors. They show the program first, since that is where the fix belongs; the frames of tensorfx follow. The text is made when it is first read.

/** A function or a class. */
type Callee = ((...args: never[]) => unknown) | (abstract new (...args: never[]) => unknown)

/** V8's API for stack traces, which other engines lack. */
export const host: { captureStackTrace?: (target: object, above?: Callee) => void; stackTraceLimit?: number } = Error

/** The number of frames to record in errors: enough to reach the program, or generated code, from inside an operator that a module calls. */
export const DEEP = 64

/** What engines recorded for errors. */
const recorded = new WeakMap<Error, { readonly stack?: string }>()

/** The stack trace of an error as the engine recorded it, the innermost frame first, whatever `error.stack` shows. */
export const recordedStack = (error: Error): string => (recorded.get(error) ?? error).stack ?? ''

/** The lines of a stack trace for `error.stack`, at most `limit` of each kind of frames. The composition root sets it. */
let arrange: (frames: string, limit: number) => string = (frames) => frames

/** Sets how errors show their stack traces. */
export function setStackText(text: (frames: string, limit: number) => string): void {
  arrange = text
}

/** The frames of a stack trace, without what the engine writes above them. */
const framesOf = (stack: string): string => stack.slice(Math.max(0, stack.search(/^ +at .|^.*@.*:\d+:\d+$/m)))

/** Gives an error its stack trace, from which the frames of its constructor and those above it are left out. */
export function recordStack(error: Error, constructor: Callee): void {
  const limit = host.stackTraceLimit ?? DEEP
  if (host.captureStackTrace === undefined || limit === 0) recorded.set(error, { stack: error.stack ?? '' })
  else {
    const holder = {}
    host.stackTraceLimit = Math.max(limit, DEEP)
    host.captureStackTrace(holder, constructor)
    host.stackTraceLimit = limit
    recorded.set(error, holder)
  }
  let text: string | null = null
  Object.defineProperty(error, 'stack', {
    get: () => (text ??= `${error.name}: ${error.message}\n${arrange(framesOf(recordedStack(error)), limit)}`),
    set(value: string) {
      text = value
    },
    configurable: true,
  })
}
