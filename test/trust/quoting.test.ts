// Whatever is written into generated code stays a name, a value or a comment, whoever chose it.
import { parse } from 'acorn'
import { describe, expect, it, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, PyTreeCodeGen, symbolicTrace } from 'tensorfx/fx'
import { MemoryFileStore } from 'tensorfx/debug'
import { folderFiles } from 'tensorfx/interop'
import { writeRepro } from '../../src/debug/script/reproScript.ts'
import { blockComment, lineComment, literal, memberAccess, propertyKey, quote } from '../../src/protocol/index.ts'

/** Texts that would run `pwned` if they left their quotes, comments or brackets. */
const PAYLOADS = [
  "');pwned();('",
  '");pwned();("',
  '`;pwned();`',
  '\npwned()\n',
  '\r\npwned()//',
  '\u2028pwned()\u2028',
  '\u2029pwned()\u2029',
  '*/ pwned() /*',
  "\\');pwned();//",
  '${pwned()}',
  ']; pwned(); [',
  ') { pwned() } function f(',
  'x = pwned()',
  "'] = pwned(); this['",
  '__proto__',
  'constructor',
  'it\'s "a" name\\',
]

/** Whether a program names `pwned` outside of its strings and comments. Fails if it is not valid JavaScript. */
function names(source: string, what = 'pwned'): boolean {
  let found = false
  parse(source, {
    ecmaVersion: 2022,
    sourceType: 'module',
    onToken: (token) => (found ||= token.type.label === 'name' && source.slice(token.start, token.end) === what),
  })
  return found
}

describe('the functions that write code', () => {
  test.each(PAYLOADS)('keep %j a string, a key, a member and a comment', (text) => {
    // oxlint-disable-next-line no-eval -- the literal is what is tested
    const evaluate = (source: string): unknown => (0, eval)(source)
    expect(evaluate(quote(text))).toBe(text)
    expect(Object.keys(evaluate(`({ ${propertyKey(text)}: 1 })`) as object)).toEqual([text])
    expect(evaluate(`((x) => x${memberAccess(text)})`)).toBeTypeOf('function')
    expect(names(`f() // ${lineComment(text)}`)).toBe(false)
    expect(names(`f() /* ${blockComment(text)} */`)).toBe(false)
    const value = JSON.parse(JSON.stringify([text, { a: text }])) as unknown
    expect(evaluate(`(${literal(value)})`)).toEqual(value)
  })

  it('write numbers that JSON lacks, and nothing for what has no literal', () => {
    expect(literal([NaN, -Infinity, -0, 3n, undefined, null, true])).toBe('[NaN, -Infinity, -0, 3n, undefined, null, true]')
    expect(literal({ a: { b: [] }, 'c-d': {} })).toBe("{ a: { b: [] }, 'c-d': {} }")
    expect([literal(() => 1), literal([new Map()]), literal({ a: Symbol.iterator })]).toEqual([null, null, null])
  })
})

/** A graph in which everything that can have a name is called `text`. */
function graphOf(text: string): GraphModule {
  const graph = new Graph()
  const x = graph.placeholder(text, text)
  const options = JSON.parse(JSON.stringify({ [text]: text })) as Record<string, string>
  const call = graph.callFunction(torch.add, [x, text], { ...options, alpha: text })
  const method = graph.callMethod('mul', [call, [text, options]], {}, text)
  for (const node of [x, call, method]) {
    node.stackTrace = `File "${text.replaceAll('"', '')}", line 1, in ${text}\n    ${text}`
    node.meta['nn_module_stack'] = new Map([[text, [text, text]]])
    node.meta['val'] = { shape: [text], dtype: text, strides: [text], device: text }
  }
  graph.output([method], text)
  graph.sourceHint = text
  return new GraphModule({}, graph, text)
}

describe.each(PAYLOADS)('a graph whose names are %j', (text) => {
  const gm = graphOf(text)

  it('has code in which they are strings', () => {
    expect(names(gm.code)).toBe(false)
    expect(() => gm.recompile()).not.toThrow()
  })

  it('can be printed, and what is printed is code without them', () => {
    const printed = gm.printReadable({ print: false, includeModule: true, includeStride: true, includeDevice: true })
    expect(names(`const nn = {}; ${printed.replaceAll('\u001b', '')}`)).toBe(false)
    const typed = gm.graph.generateCode({ types: 'jsdoc', verbose: true }).source
    expect(names(typed)).toBe(false)
    // In TypeScript a type that is no type is left out.
    expect(gm.graph.generateCode({ types: 'typescript' }).source).not.toMatch(/[,;=(]\s*pwned\(\)(?![^'\n]*')/)
  })

  it('can be written as a folder of code', () => {
    expect(names(folderFiles(gm)['module.mjs'])).toBe(false)
  })

  it('can be written as a repro script', () => {
    const spec = { backend: text, accuracy: 'none', checkStr: text, signature: text, onlyFwd: false } as const
    const options = { after: 'aot', command: 'run', spec, imports: [text] } as const
    const script = writeRepro(new MemoryFileStore(), '/tmp/repro.mjs', `/tmp/${text}`, gm, [torch.ones([1])], options)
    expect(names(script)).toBe(false)
  })
})

describe('names of attributes', () => {
  const names_ = PAYLOADS.filter((text) => !text.includes('.') && !(text in Object.prototype))
  it.each(names_)('%j is a name in code, in folders of code and in repro scripts', (text) => {
    const graph = new Graph()
    const read = graph.getAttr(text)
    graph.output(graph.callFunction(torch.relu, [read]))
    const gm = new GraphModule({ [text]: torch.tensor([-1, 1]) }, graph)
    expect((gm.call() as Tensor).toArray()).toEqual([0, 1])
    const spec = { backend: 'eager', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true } as const
    const options = { after: 'aot', command: 'run', spec, imports: [] } as const
    for (const code of [
      gm.code,
      folderFiles(gm)['module.mjs'],
      writeRepro(new MemoryFileStore(), '/tmp/repro.mjs', '/tmp/inputs', gm, [], options),
    ]) {
      expect(names(code)).toBe(false)
      expect(code).toContain(quote(text))
    }
  })

  it('a layer keeps its options as values, whatever their keys are', () => {
    const layer = new nn.ReLU()
    Object.assign(layer, { inplace: { "a: pwned(), 'b": 1 } })
    const gm = symbolicTrace((x: Tensor) => x)
    gm.addSubmodule('layer', layer)
    expect(names(folderFiles(gm)['module.mjs'])).toBe(false)
  })

  it('a string that looks like a call stays a string in a folder of code', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    graph.output(graph.callFunction(registeredAssert(), [x, "torch._assert('pwned');pwned()"]))
    const code = folderFiles(new GraphModule({}, graph))['module.mjs']
    expect(names(code)).toBe(false)
    expect(code).toContain("registered('torch._assert')(")
  })
})

/** `torch._assert`, as graphs call it. */
function registeredAssert(): (...args: readonly unknown[]) => unknown {
  const gm = symbolicTrace((x: Tensor, flag = true) => (flag ? x : x.neg()), { concreteArgs: { flag: true } })
  for (const node of gm.graph.nodes) if (node.op === 'call_function' && node.name.includes('assert')) return node.target
  throw new Error('the trace has no assertion')
}

describe('PyTreeCodeGen', () => {
  const leaf = { kind: 'leaf' } as const
  const nested = { kind: 'array', children: [leaf] } as const
  const info = (origArg: string) => ({ origArgs: [origArg], inSpec: { kind: 'array' as const, children: [nested] }, outSpec: null })

  it.each(PAYLOADS)('keeps %j, the name of an input, a name', (text) => {
    expect(names(`${new PyTreeCodeGen(info(text)).functionHead(['x'])}}`)).toBe(false)
  })

  it('takes the names that JavaScript takes', () => {
    for (const text of ['x', '_1', '$a', 'größe', 'input'])
      expect(new PyTreeCodeGen(info(text)).functionHead(['x_1'])).toContain(`function forward(${text})`)
  })

  it('writes the keys of a pattern as keys', () => {
    for (const text of PAYLOADS) {
      const pattern = { kind: 'object', keys: [text], children: [leaf] } as const
      const codegen = new PyTreeCodeGen({ origArgs: ['o'], inSpec: { kind: 'array', children: [pattern] }, outSpec: null, patterns: [0] })
      expect(names(`${codegen.functionHead(['x'])}}`)).toBe(false)
      expect(codegen.functionHead(['x'], { style: 'typescript', parameters: [null], returns: null, usesThis: false })).toContain(
        `${propertyKey(text)}?: any`,
      )
    }
  })
})
