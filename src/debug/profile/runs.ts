// The runs of a program that is profiled: one profile at a time, of what is synchronous.
import { ArgumentError } from '../../errors/index.ts'
import { isPromise, valueText } from '../../protocol/index.ts'

let isRunning = false

/** Calls `take` with a function that runs `fn`. Throws ArgumentError while another profile is being taken, and if `fn` returns a promise. */
export function runOf<T>(where: string, fn: () => unknown, take: (run: () => void) => T): T {
  if (isRunning) throw new ArgumentError(`${where}: a profile is being taken already, and fn of that one takes another. Take one after the other.`)
  isRunning = true
  try {
    return take(() => {
      const result = fn()
      if (!isPromise(result)) return
      // It is not awaited: what it throws later is not an error of its own.
      result.then(undefined, () => undefined)
      throw new ArgumentError(`${where}: fn returned a promise. Profile the synchronous part: what runs after an await is not recorded.`)
    })
  } finally {
    isRunning = false
  }
}

/** Checks an option that says how often. */
export function checkTimes(where: string, name: string, value: number, least: number): void {
  if (!Number.isSafeInteger(value) || value < least)
    throw new ArgumentError(`${where}: option '${name}' must be a whole number from ${least} on, got ${valueText(value)}.`)
}
