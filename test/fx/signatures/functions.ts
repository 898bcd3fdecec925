// Sources of functions to read signatures from: those in installed packages, and random ones.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'acorn'
import type { Node as Syntax } from 'acorn'
import * as fc from 'fast-check'

const PACKAGES = fileURLToPath(new URL('../../../node_modules/', import.meta.url))

/** Every function in the JavaScript files of an installed package. */
export function functionsInPackage(name: string): string[] {
  const files = readdirSync(join(PACKAGES, name), { recursive: true, encoding: 'utf8' }).filter((file) => /\.[cm]?js$/.test(file))
  return files.toSorted().flatMap((file) => functionsIn(readFileSync(join(PACKAGES, name, file), 'utf8')))
}

/** The sources of all functions in a program, as `toString` gives them. */
export function functionsIn(text: string): string[] {
  const found: string[] = []
  const visit = (node: Syntax, parent: Syntax | null): void => {
    if (/Function/.test(node.type)) found.push(sourceOf(text, node, parent))
    for (const child of Object.values(node).flat()) if (isSyntax(child)) visit(child, node)
  }
  const program = parseProgram(text)
  if (program !== null) visit(program, null)
  return found
}

function parseProgram(text: string): Syntax | null {
  for (const sourceType of ['module', 'script'] as const) {
    try {
      return parse(text, { ecmaVersion: 'latest', sourceType, allowHashBang: true, allowReturnOutsideFunction: true })
    } catch {
      // The other kind, or no JavaScript.
    }
  }
  return null
}

/** The source of a method starts with its modifiers, but without `static`. */
function sourceOf(text: string, node: Syntax, parent: Syntax | null): string {
  const isMethod =
    parent?.type === 'MethodDefinition' ||
    (parent?.type === 'Property' && (parent as { method?: boolean }).method === true) ||
    (parent?.type === 'Property' && (parent as { kind?: string }).kind !== 'init')
  return isMethod && parent !== null ? text.slice(parent.start, node.end).replace(/^static\s+/, '') : text.slice(node.start, node.end)
}

const isSyntax = (value: unknown): value is Syntax =>
  typeof value === 'object' && value !== null && typeof (value as Partial<Syntax>).type === 'string'

/** Text between tokens. */
const gap = fc.constantFrom('', '', ' ', '\n', '/* , ) = ] } ` */', '// ( { "\n', '/**/ ')

const name = fc.constantFrom('x', 'y', '$', '_a', 'async', 'of', 'get', 'été', 'rest2')
const key = fc.constantFrom('scale', 'bias', 'if', 'get', 'class', 'async')

/** Expressions of literals. */
const literal: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(
      ...['0', '12', '1.5', '.5', '1e-3', '0xff', '0b101', '0o17', '017', '1_000', '10n', 'null', 'true', 'false', 'undefined', 'NaN', 'Infinity'],
      ...["'a'", '"b\\"c"', "'\\n\\x41\\u{1F600}\\u0042'", "'it\\'s'", '``', '`t)`', '`a\nb`', '`\\`$`'],
    ),
    tie('value').map((value) => `-${value.startsWith('-') ? ' ' : ''}${value}`),
    tie('value').map((value) => `!${value}`),
    tie('value').map((value) => `(${value})`),
    fc
      .tuple(fc.array(tie('value'), { maxLength: 3 }), fc.constantFrom('', ','))
      .map(([items, end]) => `[${items.join(', ')}${items.length > 0 ? end : ''}]`),
    fc.array(fc.tuple(key, tie('value')), { maxLength: 3 }).map((entries) => `{ ${entries.map(([k, v]) => `${k}: ${v}`).join(', ')} }`),
  ),
})).value

/** Expressions that are not literals, with everything that makes it hard to find their end. */
const expression = fc.constantFrom(
  ...[
    'f(a, b)',
    'a.b',
    '2 * 3',
    '-a',
    '+1',
    'void 0',
    'typeof a',
    '[...a]',
    '[, 1]',
    '{ a }',
    "{ 'a': 1 }",
    '{ [a]: 1 }',
    '{ get a() { return 1 } }',
    '{ m(a, b) {} }',
  ],
  ...[
    'a ? b : c',
    'a ? { b: 1 } : [c]',
    'a / b / c',
    '(a) / 2 + /[/)]/g.test(b)',
    '/[)\\]}]\\//g',
    'a[0] / 2, b'.split(',')[0] ?? '',
    'a++ / 2',
    '{}.a / 2',
    '/a/ / /b/',
  ],
  ...[
    '`${a}, ${`)${{ b: `}` }.b}`}`',
    '`a${1}`',
    't`x`',
    "'a' + 'b'",
    '(1, 2)',
    '5..toFixed()',
    '[1][0]',
    "'a'.length",
    'async () => {}',
    'async (a, b) => a',
    '(a, b) => ({ a, b })',
  ],
  ...[
    'function (a, b) { return a / b }',
    'function f(a) { if (a) /)/.test(a) }',
    'class { m(a, b) {} static x = 1 }',
    'class A extends f({}) { #p = 1; get x() { return this.#p } }',
    'new A(b, c)',
    'import("a")',
  ],
)

const fallback = fc.oneof(
  fc.constant(''),
  fc.tuple(gap, fc.oneof(literal, expression)).map(([space, value]) => `${space}=${space}${value}`),
)

const pattern: fc.Arbitrary<string> = fc.letrec<{ pattern: string; element: string }>((tie) => ({
  pattern: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    name,
    name,
    fc
      .tuple(fc.array(fc.oneof(tie('element'), tie('element'), fc.constant('')), { maxLength: 3 }), gap, fc.option(tie('pattern'), { nil: null }))
      .map(([items, space, rest]) => `[${[...items, ...(rest === null ? [] : [`...${rest}`])].join(`${space},`)}]`),
    fc
      .tuple(
        fc.array(
          fc.oneof(
            tie('element').map((e) => `k: ${e}`),
            fc.tuple(key, tie('element')).map(([k, e]) => `${k}: ${e}`),
            fc.tuple(name, fallback).map(([n, d]) => `${n}${d}`),
            tie('element').map((e) => `'q': ${e}`),
            tie('element').map((e) => `[a, b]: ${e}`),
            tie('element').map((e) => `1: ${e}`),
          ),
          { maxLength: 3 },
        ),
        gap,
        fc.option(name, { nil: null }),
      )
      .map(([items, space, rest]) => `{${space}${[...items, ...(rest === null ? [] : [`...${rest}`])].join(', ')}}`),
  ),
  element: fc.tuple(tie('pattern'), fallback).map(([p, d]) => `${p}${d}`),
})).pattern

const parameters = fc
  .tuple(
    fc.array(fc.tuple(gap, pattern, fallback), { maxLength: 4 }),
    fc.oneof(
      fc.constant(null),
      fc.constant('rest'),
      fc.constant('rest'),
      pattern.filter((p) => /^[[{]/.test(p)),
    ),
    gap,
  )
  .map(([list, rest, space]) =>
    [...list.map(([before, p, d]) => `${before}${p}${d}`), ...(rest === null ? [] : [`${space}...${space}${rest}`])].join(`${space},`),
  )

/** Statements that read `rest` and `arguments` in all kinds of places, or only seem to. */
const statement = fc.constantFrom(
  ...[
    'rest[0]',
    'rest[1]',
    'rest?.[2]',
    'rest[ 0x3 ]',
    'operator.getitem(rest, 1)',
    'operator.getitem( rest , 4 )',
    'a = rest[0] / rest[1]',
    '`${rest[3]}`',
    'f(...rest[1])',
    'rest[0](rest[1])',
  ],
  ...[
    'rest = null',
    'a = rest = null',
    'a[0]; rest = rest2 = null',
    'o.rest',
    'o?.rest',
    '({ rest: 1 })',
    '({ rest() {} })',
    '({ get rest() {} })',
    '({ async *rest() {} })',
    '"rest"',
    '/rest/.test(a)',
    '// rest\n',
  ],
  ...[
    'rest',
    'rest.length',
    'rest[i]',
    'rest[-1]',
    'rest[1.5]',
    'rest[0n]',
    "rest['0']",
    'f(rest)',
    'f(...rest)',
    '[...rest]',
    '({ rest })',
    'for (const r of rest) r',
    'o.operator.getitem(rest, 1)',
    'getitem(rest, 1)',
    'operator.getitem(rest, i)',
    'operator.getitem(a, rest)',
  ],
  ...[
    'arguments[0]',
    'f(arguments)',
    '() => arguments',
    '(() => { arguments })()',
    '`${arguments}`',
    '({ arguments })',
    'function g() { return arguments }',
    '(function () { return arguments })',
    'a = async function* g(b = arguments) { arguments }',
  ],
  ...[
    '({ m() { return arguments } })',
    '({ get m() { return arguments } })',
    '({ async *m(a = {}) { return arguments } })',
    'class K { m() { return arguments } static s() { return arguments } }',
    'o.arguments',
    '({ arguments: 1 })',
    '({ arguments() {} })',
    '"arguments"',
    '/* arguments */',
    '/arguments/g.test(a)',
  ],
  ...[
    'if (a) /arguments/.test(a)',
    'while (a) { /rest/.test(a) }',
    '{ rest2: 1 }',
    'switch (a) { case 1: { b } default: { /[{]/ } }',
    'a ? { b: 1 } : { c: /}/ }',
    'a = {} / 2',
    'label: for (;;) { break label }',
    'do { a } while (b)',
    'for (const { a } of [/]/]) a',
  ],
)

const body = fc.array(statement, { maxLength: 4 }).map((statements) => statements.join(';\n'))

const head = fc.constantFrom(
  ...[
    'function',
    'function f',
    'async function',
    'function* f',
    'async function *',
    'm',
    'async m',
    '*m',
    'async *m',
    "'quoted name'",
    '12',
    '[a, (b)]',
    'async [`${m}`]',
    'get',
    'set',
    'static',
    'async',
    'class',
    'function',
  ],
)

/** Sources of functions, arrow functions and methods. */
export const functionSources: fc.Arbitrary<string> = fc.oneof(
  fc.tuple(head, gap, parameters, gap, body).map(([h, before, p, after, b]) => `${h}${before}(${p})${after}{${b}}`),
  fc
    .tuple(fc.constantFrom('', 'async ', 'async/**/'), parameters, gap, body)
    .map(([modifier, p, space, b]) => `${modifier}(${p})${space.replaceAll('\n', ' ').replace(/\/\/.*/, '')}=>${space}{${b}}`),
  fc.tuple(fc.constantFrom('', 'async '), name, gap, body).map(([modifier, n, space, b]) => `${modifier}${n} =>${space}{${b}}`),
  fc
    .tuple(
      parameters,
      fc.oneof(
        literal.map((value) => `(${value})`),
        fc.constantFrom('rest', 'rest[0]', 'arguments', '[rest[1], rest[0]]', '({ rest: rest[2] })'),
      ),
    )
    .map(([p, value]) => `(${p}) => ${value}`),
)
