// A random program: JavaScript as a tree of statements, so that it can be shrunk, and its text.
//
// A statement is { text, simpler } (`simpler`: shorter texts that may take its place) or { parts }, a block: strings (its head, `} else {`, its end)
// and lists of statements in turn.

/** A statement of one line. */
export const line = (text, simpler = []) => ({ text, simpler })

/** A program: what runs before f is made, f's parameters and body, and the calls with what runs around them. */
export const makeProgram = (seed, kinds) => ({ seed, kinds, setup: [], params: [], body: [], calls: [] })

/** The arguments of a call as an expression. A later argument may use the names of earlier ones. */
function argumentsOf(program, call) {
  const made = `[${call.list.join(', ')}]`
  const named = call.list.some((text, i) => program.params.slice(0, i).some((name) => new RegExp(`\\b${name}\\b`).test(text)))
  const args = named
    ? `{ ${program.params.map((name, i) => `const ${name} = ${call.list[i]}; `).join('')}return [${program.params.join(', ')}] }`
    : made
  return `() => ${args}`
}

function print(statements, indent, out) {
  for (const { text, parts } of statements) {
    for (const part of parts ?? [text]) {
      if (Array.isArray(part)) print(part, `${indent}  `, out)
      else out.push(indent + part)
    }
  }
  return out
}

/** The program as JavaScript. It uses the names of `preludeNames`, and `wrap`, which compiles f (or not). */
export function textOf(program) {
  const out = print(program.setup, '', [])
  out.push(`const f = wrap((${program.params.join(', ')}) => {`)
  print(program.body, '  ', out)
  out.push('})')
  program.calls.forEach((call, i) => {
    out.push(`{ // call ${i + 1}`)
    print(call.before, '  ', out)
    out.push(`  const result = attempt(f, ${argumentsOf(program, call)})`)
    print(call.after, '  ', out)
    out.push('}')
  })
  return out.join('\n')
}

/** Counts lines of code: the measure that shrinking reduces. */
export const sizeOf = (program) => textOf(program).length

/** All lists of statements in the program, outer ones first. */
export function listsOf(program) {
  const lists = [program.setup, program.body, ...program.calls.flatMap((call) => [call.before, call.after])]
  for (let i = 0; i < lists.length; i++)
    for (const statement of lists[i]) if (statement.parts !== undefined) lists.push(...statement.parts.filter((part) => Array.isArray(part)))
  return lists
}
