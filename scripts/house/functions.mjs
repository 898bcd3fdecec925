// The functions of a source file with their lengths and numbers of parameters, and the limits for them. `node scripts/house/functions.mjs` lists those above.
import { parse } from '@babel/parser'
import { readFileSync, readdirSync } from 'node:fs'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export const LIMITS = { lines: 60, parameters: 5 }

const FUNCTIONS = new Set([
  'FunctionDeclaration',
  'FunctionExpression',
  'ArrowFunctionExpression',
  'ObjectMethod',
  'ClassMethod',
  'ClassPrivateMethod',
])
/** The rules of an operator's declaration, whose parameters are those of its schema. */
const RULES = new Set(['meta', 'kernel', 'decompose', 'scatter'])
const PROPERTIES = new Set(['ObjectProperty', 'ClassProperty', 'ClassPrivateProperty'])

const keyOf = ({ key }) => (key.type === 'PrivateName' ? `#${key.id.name}` : (key.name ?? key.value ?? null))

/** The functions of a source text. Those without a name have that of the variable or property that they are the value of, or 'anonymous'. */
export function functionsIn(text) {
  const found = []
  const visit = (node, owner, given) => {
    if (typeof node?.type !== 'string') return
    const inside = node.type.startsWith('Class') && node.body?.type === 'ClassBody' ? (node.id?.name ?? owner) : owner
    if (FUNCTIONS.has(node.type)) {
      const name = node.id?.name ?? (node.key === undefined ? given : keyOf(node)) ?? 'anonymous'
      found.push({
        name: node.type.startsWith('Class') ? `${owner}.${name}` : name,
        line: node.loc.start.line,
        lines: node.loc.end.line - node.loc.start.line + 1,
        parameters: node.params.length,
      })
    }
    for (const [key, value] of Object.entries(node)) {
      if (key.endsWith('Comments') || key === 'loc') continue
      const name =
        node.type === 'VariableDeclarator' && key === 'init'
          ? (node.id.name ?? null)
          : PROPERTIES.has(node.type) && key === 'value'
            ? keyOf(node)
            : node.type === 'CallExpression'
              ? given
              : null
      for (const child of Array.isArray(value) ? value : [value]) visit(child, inside, name)
    }
  }
  visit(parse(text, { sourceType: 'module', plugins: ['typescript', 'explicitResourceManagement'] }).program, null, null)
  return found
}

/** The functions of `src` above a limit, as `file:name`, the largest first. */
export function aboveLimits(src) {
  const all = readdirSync(src, { recursive: true })
    .filter((file) => file.endsWith('.ts') && !file.includes('generated'))
    .map((file) => file.split(sep).join('/'))
    .flatMap((file) =>
      functionsIn(readFileSync(join(src, file), 'utf8')).map((fn) => ({ ...fn, key: `${file}:${fn.name}`, inOps: file.startsWith('ops/') })),
    )
  return {
    lines: all.filter(({ lines }) => lines > LIMITS.lines).toSorted((a, b) => b.lines - a.lines),
    parameters: all
      .filter(({ parameters, name, inOps }) => parameters > LIMITS.parameters && !(inOps && RULES.has(name)))
      .toSorted((a, b) => b.parameters - a.parameters),
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { lines, parameters } = aboveLimits(fileURLToPath(new URL('../../src', import.meta.url)))
  console.log(`${lines.length} functions have more than ${LIMITS.lines} lines, ${parameters.length} more than ${LIMITS.parameters} parameters`)
  for (const fn of lines) console.log(`${String(fn.lines).padStart(5)} lines       ${fn.key}, line ${fn.line}`)
  for (const fn of parameters) console.log(`${String(fn.parameters).padStart(5)} parameters  ${fn.key}, line ${fn.line}`)
}
