// Whether a program means the same with the debugger at any place and level as without: bit for bit, with the layout and the version of every tensor, and the random numbers after it.
import { compareNotes, runProgram } from './run.mjs'

/** Every place and level of the debugger. */
export const settings = ['dynamo', 'aot'].flatMap((reproAfter) => [1, 2, 3, 4].map((reproLevel) => ({ reproAfter, reproLevel })))

/** Runs a compiled program with some settings of the debugger. What it would write stays in memory. Returns its notes, and the errors that the debugger logged. */
function runWith(api, program, wrap, setting) {
  const { config, debug } = api
  const { reproAfter, reproLevel } = config
  const errors = []
  const store = debug.setFileStore(new debug.MemoryFileStore())
  const sink = debug.setLogSink((level, message) => void (level === 'error' && errors.push(message)))
  Object.assign(config, setting)
  try {
    return { ...runProgram(api, program, { wrap, layout: true }), errors }
  } finally {
    Object.assign(config, { reproAfter, reproLevel })
    debug.setFileStore(store)
    debug.setLogSink(sink)
  }
}

/** The first difference between a compiled program with the debugger and without it: null if there is none, 'invalid' for a program that is itself wrong. */
export function judgeDebugger(api, program, wrap, chosen = settings) {
  const without = runWith(api, program, wrap, { reproAfter: null })
  if (without.invalid) return 'invalid'
  for (const setting of chosen) {
    const { notes, errors } = runWith(api, program, wrap, setting)
    const found = compareNotes(without.notes, notes, () => () => false)
    const at = `after ${setting.reproAfter}, level ${setting.reproLevel}`
    if (found !== null) return { ...found, where: `${at}: ${found.where}` }
    if (errors.length > 0) return { where: `${at}: the log`, expected: 'no errors', got: errors[0] }
  }
  return null
}
