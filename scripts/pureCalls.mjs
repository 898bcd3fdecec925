// Part of npm run build: tells bundlers that declaring an operator, or the kernels of one, has no effect beyond the declaration, so that they leave out the operators of a
// module that a program does not use. TypeScript has no such note, and 600 declarations in the sources would have to carry one.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const dist = fileURLToPath(new URL('../dist/', import.meta.url))

/** A constant of a module whose value one of these functions makes. Only table.ts registers operators. */
const DECLARATION = /^((?:export )?const \w+ = )((?:defineOp|makeOp|inPlaceOf|kernelCache|bufferParam)\()/gm

for (const name of readdirSync(dist, { recursive: true }).filter((file) => file.endsWith('.js'))) {
  const before = readFileSync(dist + name, 'utf8')
  const after = before.replace(DECLARATION, '$1/* @__PURE__ */ $2')
  if (after !== before) writeFileSync(dist + name, after)
}
