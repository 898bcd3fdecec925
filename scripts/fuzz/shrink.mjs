// Makes a failing program as short as possible: fewer calls, statements and parameters, and simpler expressions, as long as it fails in the same way.
import { listsOf, sizeOf } from './program.mjs'

const copyOf = (program) => structuredClone(program)

/** Numbers of statements to leave out: halves first, then ever less, down to single ones. */
function* chunks(count) {
  for (let size = count; size >= 1; size = Math.floor(size / 2)) for (let start = 0; start < count; start += size) yield [start, size]
}

function rename(program, from, to) {
  for (const list of listsOf(program)) {
    for (const statement of list) {
      if (statement.parts === undefined) statement.text = statement.text.replace(from, to)
      else statement.parts = statement.parts.map((part) => (typeof part === 'string' ? part.replace(from, to) : part))
    }
  }
}

/** Programs that are one step simpler, boldest steps first. Each is a change of a copy. */
function* steps(program) {
  for (let i = program.calls.length - 1; i >= 0 && program.calls.length > 1; i--) yield (copy) => copy.calls.splice(i, 1)
  const lists = listsOf(program)
  for (let l = 0; l < lists.length; l++) for (const [start, size] of chunks(lists[l].length)) yield (copy) => listsOf(copy)[l].splice(start, size)
  for (let p = program.params.length - 1; p >= 0; p--) {
    yield (copy) => {
      copy.params.splice(p, 1)
      for (const call of copy.calls) call.list.splice(p, 1)
    }
  }
  for (let l = 0; l < lists.length; l++) {
    for (let s = 0; s < lists[l].length; s++) {
      const { parts, simpler } = lists[l][s]
      // A block gives way to the statements in it.
      if (parts !== undefined)
        for (let p = 0; p < parts.length; p++)
          if (Array.isArray(parts[p])) yield (copy) => listsOf(copy)[l].splice(s, 1, ...listsOf(copy)[l][s].parts[p])
      for (const text of simpler ?? []) yield (copy) => listsOf(copy)[l].splice(s, 1, { text, simpler: [] })
    }
  }
  // `const v2 = v1`: v1 in the place of v2.
  for (let l = 0; l < lists.length; l++) {
    for (let s = 0; s < lists[l].length; s++) {
      const [, to, from] = /^(?:const|let) (\w+) = (\w+)$/.exec(lists[l][s].text ?? '') ?? []
      if (to === undefined) continue
      yield (copy) => {
        listsOf(copy)[l].splice(s, 1)
        rename(copy, new RegExp(`\\b${to}\\b`, 'g'), from)
      }
    }
  }
  for (let p = 0; p < program.params.length; p++) {
    for (const [pattern, to] of [
      [/\.requiresGrad_\(\)$/, ''],
      [/^data\(\[(\d+), .*?\], /, 'data([$1], '],
      [/^data\(\[.*?\], \d+/, 'data([2], 1'],
      [/, '\w+'\)/, ')'],
    ])
      yield (copy) => {
        for (const call of copy.calls) call.list[p] = call.list[p].replace(pattern, to)
      }
  }
}

/** `fails(program)` runs it; at most `budget` times. */
export function shrink(program, fails, budget = 500) {
  let best = program
  let left = budget
  for (let progress = true; progress && left > 0;) {
    progress = false
    const tried = new Set()
    for (const step of steps(best)) {
      const candidate = copyOf(best)
      step(candidate)
      const size = sizeOf(candidate)
      const key = JSON.stringify(candidate)
      if (size >= sizeOf(best) || tried.has(key)) continue
      tried.add(key)
      if (left-- <= 0) break
      if (fails(candidate)) {
        best = candidate
        progress = true
        break
      }
    }
  }
  return best
}
