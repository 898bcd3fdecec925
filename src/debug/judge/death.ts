// The ways in which a candidate ends its process, or never ends. They are failures that can be minified, and are told apart.

/** A failure that only another process can observe: FailureSpec.death. */
export const isDeath = (death: string | null | undefined): death is string => death !== null && death !== undefined

/** A helper gave no answer in time. */
export const HANG = 'hang'

/** Exit codes from here on stand for signals, and for Windows' exceptions. */
const FIRST_SIGNAL = 128

/** How a helper died, from its own words: 'exit 7' for a program that called `process.exit(7)`, and 'crash' for anything else, such as a signal. */
export function deathOf(reason: string): string {
  const code = /^exit code (\d+)$/.exec(reason)?.[1]
  return code === undefined || Number(code) >= FIRST_SIGNAL ? 'crash' : `exit ${code}`
}

/** Whether a death is the one that is looked for. A process that runs out of memory may run out of time first. */
export const isSameDeath = (wanted: string, death: string): boolean => wanted === 'any' || wanted === death || (wanted === 'crash' && death === HANG)

/** Whether a text is one of the kinds. */
export const isDeathKind = (text: string): boolean => text === 'any' || isDeathSignature(text)

/** Whether an outcome's signature names a death. Those of errors hold bars. */
export const isDeathSignature = (signature: string): boolean => signature === HANG || signature === 'crash' || /^exit \d+$/.test(signature)
