// The lint rules: what they find and let pass, run over acorn's trees; and once as users run them, by oxlint.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'acorn'
import { describe, expect, it } from 'vitest'
import { Tensor } from 'tensorfx'
import { removeFolder } from '../helpers/folder.ts'
import plugin from '../../lint-rules/index.js'
import { VERSION } from '../../src/version.ts'
import { COMMON, DISTINCT, LISTS, SHARED } from '../../lint-rules/vocabulary.js'

type RuleName = keyof typeof plugin.rules
interface Report {
  readonly node: { readonly start: number; readonly end: number }
  readonly messageId: string
  readonly data: { readonly what: string }
}

/** The source texts that a rule reports. */
function found(rule: RuleName, code: string, options: readonly object[] = []): string[] {
  const reports: Report[] = []
  const visitor = plugin.rules[rule].create({ options, report: (r: Report) => reports.push(r) })
  visitor['Program']?.(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }))
  return reports.map(({ node }) => code.slice(node.start, node.end))
}
const forward = (body: string, params = 'x, y'): string => `class M extends Module { forward(${params}) { ${body} } }`

describe('no-tensor-condition', () => {
  it.each([
    ['if', 'if (x.sum().gt(0)) return x'],
    ['while', 'while (x.lt(0)) x = x.add(1)'],
    ['do while', 'do { x = x.add(1) } while (x.lt(0))'],
    ['for', 'for (; x.lt(0); ) x = x.add(1)'],
    ['ternary', 'return x.gt(0) ? x : y'],
    ['not', 'return !x.relu()'],
    ['not not', 'return !!x.relu()'],
    ['and', 'return x.gt(0) && y'],
    ['or', 'return x.gt(0) || y'],
    ['Boolean', 'return Boolean(x.gt(0))'],
    ['the last operand of a condition', 'if (this.flag && x.gt(0)) return x'],
    ['a variable', 'const c = x.gt(0); if (c) return x'],
    ['a variable that is set later', 'let c; for (;;) { if (c) break; c = x.gt(0) }'],
    ['an element of a pattern', 'const [a, b] = x.chunk(2); if (a) return b'],
    ['an element of a loop', 'for (const r of x.unbind(0)) if (r) return r'],
    ['a parameter that is used as a tensor', 'if (y) return x; return x.add(torch.exp(y))'],
    ['the result of a layer', 'const h = this.fc.call(x); return h ? h : x'],
    ['a function of torch', 'if (torch.any(x)) return x'],
    ['a callback inside', 'return [1].map(() => (x.gt(0) ? 1 : 2))'],
    ['a transposed tensor', 'x.relu(); if (x.T) return x'],
  ])('finds: %s', (_, body) => expect(found('no-tensor-condition', forward(body))).toHaveLength(1))

  it.each([
    ['a value that was read', 'if (x.sum().gt(0).item()) return x'],
    ['a comparison of plain values', 'if (this.n > 3 && y.length) return x.relu()'],
    ['a test for null', 'if (y !== null && y != undefined) return x.add(y)'],
    ['an optional value', 'const z = y ?? x.relu(); return z'],
    ['a predicate', 'if (torch.equal(x, y)) return x.relu()'],
    ['sizes', 'x.relu(); if (x.shape[0] === 3 && x.ndim === 2) return x'],
    ['methods of other objects', 'const s = new Set(); if (s.add(1)) return Math.max(1, 2) ? x.relu() : console.log(1)'],
    ['a parameter with a plain default', 'x.relu(); if (flag) return x'],
    ['a shadowed name', 'x.relu(); return [1].filter((x) => x)'],
  ])('lets pass: %s', (_, body) => expect(found('no-tensor-condition', forward(body, 'x, y, flag = true'))).toEqual([]))

  it('looks into functions that are traced, given directly or by name, and into those that call what only tensors have', () => {
    expect(found('no-tensor-condition', 'symbolicTrace((x) => (x.gt(0) ? x : 1))')).toEqual(['x.gt(0)'])
    expect(found('no-tensor-condition', 'function f(x) { if (x.gt(0)) return x }\nconst g = fx.symbolicTrace(f)')).toEqual(['x.gt(0)'])
    expect(found('no-tensor-condition', 'const f = (x) => !x.gt(0); compile(f)')).toEqual(['x.gt(0)'])
    expect(found('no-tensor-condition', 'const f = (x) => (x.gt(0) ? x.relu() : x)')).toEqual(['x.gt(0)'])
    expect(found('no-tensor-condition', 'const f = (x) => (x.gt(0) ? x : null)')).toEqual([])
    expect(found('no-tensor-condition', 'class P { forward(steps) { return steps > 0 ? 1 : 2 } }')).toEqual([])
  })
})

describe('eager code', () => {
  it.each([
    ['a comparison of all elements', 'const x = torch.randn(2, 4)\nif (x.gt(0).any()) x.neg()', ['x.gt(0).any()']],
    ['a row of a loop', 'const x = torch.randn(2, 4)\nfor (const row of x) if (row) row.neg()', ['row']],
    ['a part', 'const [a] = torch.ones([2])\nif (a) a.neg()', ['a']],
    ['a value that was read', 'const x = torch.randn(2, 4)\nif (x.gt(0).any().item()) x.neg()', []],
  ])('%s', (_, code, texts) => expect(found('no-tensor-condition', code)).toEqual(texts))
})

describe('no-tensor-equality', () => {
  it.each([
    ['===', 'return x.relu() === y', ['x.relu() === y']],
    ['!==', 'const a = x.relu(); return y !== a', ['y !== a']],
    ['==', 'return x.relu() == 0', ['x.relu() == 0']],
    ['switch', 'switch (x.relu()) { case 1: return 1 }', ['x.relu()']],
    ['null', 'return x.relu() === null || null == x', []],
    ['strings', "return this.mode === 'train' ? x.relu() : x", []],
  ])('%s', (_, body, expected) => expect(found('no-tensor-equality', forward(body))).toEqual(expected))

  it('sizes: where symbolicTrace runs the function, or everywhere when asked to', () => {
    expect(found('no-tensor-equality', 'symbolicTrace((x) => (x.relu().size(0) === 3 ? 1 : 2))')).toEqual(['x.relu().size(0) === 3'])
    expect(found('no-tensor-equality', 'compile((x) => (x.relu().size(0) === 3 ? 1 : 2))')).toEqual([])
    expect(found('no-tensor-equality', forward('x.relu(); return x.shape[0] === 3'))).toEqual([])
    expect(found('no-tensor-equality', forward('x.relu(); return x.shape[0] === 3'), [{ sizes: true }])).toEqual(['x.shape[0] === 3'])
    expect(found('no-tensor-condition', 'symbolicTrace((x) => (x.relu().ndim ? 1 : 2))')).toEqual(['x.relu().ndim'])
  })
})

describe('no-tensor-operator', () => {
  it.each([['x.relu() + 1'], ['2 * x.relu()'], ['x.relu() / y'], ['x.relu() < 0'], ['-x.relu()'], ['+x.relu()'], ['~x.relu()'], ['x.relu() ** 2']])(
    'finds: %s',
    (code) => expect(found('no-tensor-operator', forward(`return ${code}`))).toEqual([code]),
  )

  it('finds assignments and counting', () => {
    expect(found('no-tensor-operator', forward('let z = x.relu(); z += 1; z++; return z'))).toEqual(['z += 1', 'z++'])
  })

  it('lets numbers pass', () => {
    expect(found('no-tensor-operator', forward('const n = x.relu().size(0) - 1; return x.mul(n / 2)'))).toEqual([])
  })
})

describe('no-tensor-typeof', () => {
  it('finds typeof, instanceof and Array.isArray', () => {
    const body = "const a = x.relu(); if (typeof a === 'object' || a instanceof Tensor || Array.isArray(a)) return 1"
    expect(found('no-tensor-typeof', forward(body))).toEqual(['typeof a', 'a instanceof Tensor', 'Array.isArray(a)'])
    expect(found('no-tensor-typeof', forward("if (typeof y === 'string' || Array.isArray(this.list)) return x.relu()"))).toEqual([])
  })
})

describe('no-tensor-key', () => {
  it.each([
    ['a read', 'return table[x.argmax()]', 'x.argmax()'],
    ['a write', 'const i = x.argmax(); table[i] = 1; return x', 'i'],
    ['a key of an object', 'const i = x.argmax(); return { [i]: 1 }', 'i'],
    ['in', 'const i = x.argmax(); return i in table', 'i'],
    ['an index of a tensor', 'const mask = x.relu(); return x[mask]', 'mask'],
    ['a row', 'x.relu(); return table[x[0]]', 'x[0]'],
  ])('finds: %s', (_, body, text) => expect(found('no-tensor-key', forward(body))).toEqual([text]))

  it.each([
    ['numbers', 'const i = x.argmax().item(); return [table[i], x[0], { [i]: 1 }]'],
    ['keys of a Map', 'return map.get(x.relu())'],
    ['sizes', 'x.relu(); return table[x.shape[0]]'],
  ])('lets pass: %s', (_, body) => expect(found('no-tensor-key', forward(body))).toEqual([]))
})

describe('the vocabulary', () => {
  it('knows every operator that is a method of tensors', () => {
    const known = new Set([...DISTINCT, ...SHARED, ...COMMON, ...LISTS])
    const plain = new Set(
      'constructor realize toArray toTypedArray toBigIntArray itemAsync toArrayAsync toTypedArrayAsync toBigIntArrayAsync item size dim stride isContiguous isFloatingPoint isComplex elementSize toString toJSON dispose valueOf equal getitem backward retainGrad registerHook asParameter copyFrom cpu'.split(
        ' ',
      ),
    )
    const methods = Object.entries(Object.getOwnPropertyDescriptors(Tensor.prototype))
      .filter(([name, d]) => typeof d.value === 'function' && !name.endsWith('_') && !plain.has(name))
      .map(([name]) => name)
    expect(methods.filter((name) => !known.has(name))).toEqual([])
  })

  it('has each word once', () => {
    const all = [...DISTINCT, ...SHARED, ...COMMON]
    expect(all.length).toBe(new Set(all).size)
  })
})

it('the plugin has the version of the package', () => {
  expect(plugin.meta).toEqual({ name: 'tensorfx', version: VERSION })
})

describe('in oxlint', () => {
  it('reports with place, rule and advice, also in TypeScript', () => {
    const root = fileURLToPath(new URL('../../', import.meta.url))
    mkdirSync(join(root, '.tmp-tests'), { recursive: true })
    const folder = mkdtempSync(join(root, '.tmp-tests', 'lint-'))
    try {
      const rules = Object.fromEntries(Object.keys(plugin.rules).map((name) => [`tensorfx/${name}`, 'error']))
      const specifier = 'tensorfx/lint-rules'
      writeFileSync(
        join(folder, '.oxlintrc.json'),
        JSON.stringify({ jsPlugins: [{ name: 'tensorfx', specifier }], categories: { correctness: 'off' }, rules }),
      )
      writeFileSync(
        join(folder, 'model.ts'),
        `export class Model extends Module {
  override forward(x: Tensor, mask: Tensor | null = null): Tensor {
    const y = this.fc.call(x) as Tensor
    if (y.sum()!.gt(0)) return y
    if (mask !== null) return y.maskedFill(mask, 0)
    return (y as unknown as number) + 1
  }
}
`,
      )
      let output = ''
      try {
        execFileSync(
          process.execPath,
          [
            join(root, 'node_modules/oxlint/bin/oxlint'),
            '-c',
            join(folder, '.oxlintrc.json'),
            '--no-ignore',
            '--format',
            'unix',
            join(folder, 'model.ts'),
          ],
          {
            encoding: 'utf8',
            stdio: 'pipe',
          },
        )
      } catch (error) {
        output = (error as { stdout: string }).stdout
      }
      const lines = output.split('\n').filter((l) => l.includes('model.ts'))
      expect(lines).toHaveLength(2)
      expect(lines[0]).toMatch(
        /model\.ts:4:9: A tensor is always true, whatever its values\. .*torch\.where.*\[Error\/tensorfx\(no-tensor-condition\)\]/,
      )
      expect(lines[1]).toMatch(/model\.ts:6:\d+: '\+' does not work on tensors\. .*\[Error\/tensorfx\(no-tensor-operator\)\]/)
    } finally {
      removeFolder(folder)
    }
  })
})
