// npm run check:casts: counts type assertions in src by room, on the syntax tree: every `x as T` and `<T>x`, but not `as const`. Fails above the limits.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from '@babel/parser'

/** What is allowed today; lower it when the count falls. */
const limits = { casts: 90, throughUnknown: 4 }

const src = fileURLToPath(new URL('../src', import.meta.url))
const isAssertion = (node) => node.type === 'TSAsExpression' || node.type === 'TSTypeAssertion'
const isConst = (type) => type.type === 'TSTypeReference' && type.typeName.name === 'const'

/** Calls `visit` on every node below a value. */
function walk(value, visit) {
  if (Array.isArray(value)) for (const item of value) walk(item, visit)
  else if (value !== null && typeof value === 'object') {
    if (typeof value.type === 'string') visit(value)
    for (const child of Object.values(value)) walk(child, visit)
  }
}

/** A room, or a wing of fx. */
const placeOf = (name) =>
  name
    .split('/')
    .slice(0, name.startsWith('fx/') ? -1 : 1)
    .slice(0, 2)
    .join('/')

const rooms = new Map()
const total = { casts: 0, throughUnknown: 0 }
const lines = []
for (const name of readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((n) => n.endsWith('.ts'))) {
  const text = readFileSync(join(src, name), 'utf8')
  walk(parse(text, { sourceType: 'module', plugins: ['typescript'] }).program, (node) => {
    if (!isAssertion(node) || isConst(node.typeAnnotation)) return
    total.casts++
    rooms.set(placeOf(name), (rooms.get(placeOf(name)) ?? 0) + 1)
    if (!isAssertion(node.expression) || node.expression.typeAnnotation.type !== 'TSUnknownKeyword') return
    total.throughUnknown++
    lines.push(`src/${name}:${text.slice(0, node.start).split('\n').length}`)
  })
}
const sorted = [...rooms].toSorted((a, b) => b[1] - a[1])
console.log(sorted.map(([room, count]) => `${String(count).padStart(5)} ${room}`).join('\n'))
if (process.argv.includes('--list')) console.log(lines.join('\n'))
let failed = false
for (const [what, title] of [
  ['casts', 'type assertions'],
  ['throughUnknown', 'of them through unknown'],
]) {
  const ok = total[what] <= limits[what]
  failed ||= !ok
  console.log(`${total[what]} ${title} (at most ${limits[what]}${ok ? '' : ': TOO MANY'})`)
}
if (failed) {
  console.log('Let TypeScript infer the type, or check it at run time. `as unknown as` places: npm run check:casts -- --list')
  process.exitCode = 1
}
