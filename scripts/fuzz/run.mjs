// Runs a program, eagerly or compiled, and compares what two runs noted.
import { THREW, preludeOf } from './prelude.mjs'
import { textOf } from './program.mjs'

/** Compiled program texts take the prelude's names as parameters. */
function functionOf(text, names) {
  // eslint-disable-next-line typescript/no-implied-eval -- the fuzzer writes programs
  return new Function(...names, `'use strict'\n${text}`)
}

/**
 * Runs a program and returns its notes. `wrap` makes f from the program's function. A program that is itself wrong (a name that does not exist, after
 * shrinking) gives { invalid: true }. `around` runs the whole of it.
 */
export function runProgram(
  api,
  program,
  { wrap = (f) => f, dtype = 'float32', perturb = null, taint = null, history = true, layout = false, around = (inner) => inner() } = {},
) {
  const { config, torch, reset, setGradEnabled } = api
  const { verifySizes } = config
  const notes = []
  const defaultDtype = torch.getDefaultDtype()
  reset()
  torch.manualSeed(1 + (program.seed % 1000))
  torch.setDefaultDtype(dtype)
  let invalid = false
  const run = () => {
    const prelude = preludeOf(api, { wrap, notes, dtype, perturb, history, layout, taintOf: taint === null ? null : taint.of })
    const names = Object.keys(prelude)
    try {
      functionOf(textOf(program), names)(...names.map((name) => prelude[name]))
    } catch (error) {
      notes.push({ label: 'the program threw', value: { error: error.constructor.name, message: error.message } })
      invalid ||= error instanceof ReferenceError || error instanceof SyntaxError
    }
    // Where the stream of random numbers has got to.
    prelude.note('random numbers after the program', torch.rand([2]))
  }
  try {
    around(() => (taint === null ? run() : taint.around(run)))
  } finally {
    torch.setDefaultDtype(defaultDtype)
    setGradEnabled(true)
    // A wrapper may have set it, for backwards outside of f as well.
    config.verifySizes = verifySizes
  }
  const wrong = (value) => value.error === 'ReferenceError' || value.error === 'SyntaxError' || value.error === 'TypeError'
  return { notes, invalid: invalid || notes.some((note) => wrong(note.value)) }
}

/** Whether two messages mean the same. A backward that has two reasons to be refused names the one that it meets first. */
const sameMessage = (a, b) => {
  const [one, other] = [withoutNodes(a), withoutNodes(b)]
  return one === other || [one, other].every((message) => message === OVERWRITTEN || WALKED.test(message))
}

const sameBits = (a, b) => Object.is(a, b) || (Number.isNaN(a) && Number.isNaN(b))

const OVERWRITTEN = 'backward: modified in place'
const WALKED = /^backward: the graph through the node has been walked before/

/** A message without the names of nodes of the tape, which are other ones in compiled code, and of what they saved. */
const withoutNodes = (message) =>
  message.replace(/\b(?:\w+Backward0?|CopySlices)\b/g, 'the node').replace(/^backward of .* has been modified in place .*$/s, OVERWRITTEN)

/** The numbers of a snapshot: of a tensor, a number, or a text; null for anything else. */
export const numbersIn = (value) => ('number' in value ? [value.number] : (value.data?.map(Number) ?? null))

/**
 * The first difference of two values, or null. Numbers go to `numbers(a, b, where)`, which says whether they may differ; it gets all elements of a tensor at once.
 */
function differenceOf(a, b, where, numbers) {
  for (const key of ['tensor', 'number', 'text', 'error', 'function', 'plain', 'map', 'list', 'object', 'unreadable'])
    if (key in a !== key in b) return { where, expected: brief(a), got: brief(b) }
  if (a.tensor) {
    if (a.dtype !== b.dtype || a.shape.join() !== b.shape.join() || a.requiresGrad !== b.requiresGrad)
      return { where, expected: brief(a), got: brief(b) }
    if (a.layout !== b.layout) return { where: `the memory of ${where}`, expected: a.layout, got: b.layout }
    return a.data.every((x, i) => sameBits(x, b.data[i])) || numbers(a, b) ? null : { where, expected: brief(a), got: brief(b), numeric: true }
  }
  if ('number' in a) return sameBits(a.number, b.number) || numbers(a, b) ? null : { where, expected: a.number, got: b.number, numeric: true }
  if ('text' in a) {
    if (a.text !== b.text) return { where, expected: a.whole, got: b.whole }
    return a.whole === b.whole || numbers(a, b) ? null : { where, expected: a.whole, got: b.whole, numeric: true }
  }
  if ('error' in a) return a.error === b.error && sameMessage(a.message, b.message) ? null : { where, expected: brief(a), got: brief(b) }
  if ('list' in a) {
    if (a.list.length !== b.list.length) return { where: `length of ${where}`, expected: a.list.length, got: b.list.length }
    return firstOf(a.list.map((item, i) => () => differenceOf(item, b.list[i], `${where}[${i}]`, numbers)))
  }
  const entries = a.map ?? a.object
  if (entries !== undefined) {
    const others = b.map ?? b.object
    if (entries.map(([k]) => k).join() !== others.map(([k]) => k).join())
      return { where: `keys of ${where}`, expected: entries.map(([k]) => k).join(), got: others.map(([k]) => k).join() }
    return firstOf(
      entries.map(
        ([k, v], i) =>
          () =>
            differenceOf(v, others[i][1], `${where}.${k}`, numbers),
      ),
    )
  }
  return JSON.stringify(a) === JSON.stringify(b) ? null : { where, expected: brief(a), got: brief(b) }
}

const firstOf = (checks) => {
  for (const check of checks) {
    const found = check()
    if (found !== null) return found
  }
  return null
}

/** A snapshot in a few words. */
export function brief(value) {
  if (value.tensor) {
    const data = value.data.slice(0, 8).map(String).join(', ')
    return `${value.dtype}[${value.shape.join(', ')}]${value.requiresGrad ? ' requires grad' : ''} ${data}${value.data.length > 8 ? ', …' : ''}`
  }
  if ('error' in value) return `${value.unreadable ? 'unreadable: ' : ''}${value.error}: ${value.message}`
  if ('number' in value) return String(value.number)
  if ('plain' in value) return value.plain
  if ('text' in value) return value.whole
  return JSON.stringify(value).slice(0, 200)
}

/**
 * The first difference between the notes of two runs, or null. `traced`: nothing is compared after f has thrown in both: a program that throws while it is traced has written nothing.
 */
export function compareNotes(expected, got, numbers, { traced = false } = {}) {
  for (let i = 0; i < Math.max(expected.length, got.length); i++) {
    const [a, b] = [expected[i], got[i]]
    // A graph may have kept a value of its own where eager mode kept memory that was overwritten since.
    if (traced && a?.value.error === 'AutogradError' && withoutNodes(a.value.message) === OVERWRITTEN) return null
    if (a === undefined) return { where: `note ${i}`, expected: 'nothing', got: `${b.label}: ${brief(b.value)}` }
    if (b === undefined) return { where: `note ${i}`, expected: `${a.label}: ${brief(a.value)}`, got: 'nothing' }
    if (a.label !== b.label) return { where: `note ${i}`, expected: `${a.label}: ${brief(a.value)}`, got: `${b.label}: ${brief(b.value)}` }
    const found = differenceOf(a.value, b.value, a.label, numbers(i))
    if (found !== null) return found
    if (traced && a.label === THREW) return null
  }
  return null
}
