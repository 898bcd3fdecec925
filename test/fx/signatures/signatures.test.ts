// Reading the parameters of functions. acorn, a complete parser, is the oracle. TENSORFX_FUZZ=2000 reads that many random functions.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import * as tensorfx from 'tensorfx'
import { signatureFrom, signatureOf } from '../../../src/fx/trace/parameters.ts'
import type { Parameter } from '../../../src/fx/trace/parameters.ts'
import { third } from '../../helpers/rotation.ts'
import { functionSources, functionsIn, functionsInPackage } from './functions.ts'
import { oracle } from './oracle.ts'

const numRuns = Number(process.env['TENSORFX_FUZZ'] ?? 1000)

/** One parameter: what differs from a plain name. */
const parameter = (name: string, given: Partial<Parameter> = {}): Parameter => ({
  name,
  default: null,
  rest: false,
  elements: null,
  properties: null,
  hasHiddenDefault: false,
  ...given,
})
const parameters = (source: string): readonly Parameter[] | undefined => signatureFrom(source)?.parameters

describe('signatures of functions', () => {
  it.each([
    ['x => x'],
    ['async x => x'],
    ['(x) => x'],
    ['async (x) => x'],
    ['function (x) {}'],
    ['function* name(x) {}'],
    ['async function*(x) {}'],
    ['name(x) {}'],
    ['async *name(x) {}'],
    ['set name(x) {}'],
    ['get(x) {}'],
    ['async(x) {}'],
    ['class(x) {}'],
    ['["a" + (b, 1)](x) {}'],
    ["'a (b)'(x) {}"],
    ['12(x) {}'],
    ['/* (a) => */ function /* (b) */ name /* { */ ( /* ) */ x /* , y */ ) /* { */ {}'],
    ['(x // , y) =>\n) => x'],
  ])('%s has the parameter x', (source) => {
    expect(parameters(source)).toEqual([parameter('x')])
  })

  it.each([
    ['class A { constructor(x) {} }'],
    ['#m(x) {}'],
    ['function () { [native code] }'],
    ['function max() { [native code] }'],
    ['1 + 1'],
    [''],
    ['(x'],
    ['(x) + 1'],
  ])('%s is not read', (source) => {
    expect(signatureFrom(source)).toBeNull()
  })

  it.each<[string, readonly [unknown?]]>([
    ['2', [2]],
    ['-0.5e3', [-500]],
    ['0x1F', [31]],
    ['017', [15]],
    ['1_000', [1000]],
    ['10n', [10n]],
    ['!0', [true]],
    ['null', [null]],
    ['undefined', [undefined]],
    ['-Infinity', [-Infinity]],
    ['"a\\tb"', ['a\tb']],
    ["'\\x41\\u0042\\u{43}\\\n\\0'", ['ABC\0']],
    ['`a\r\nb`', ['a\nb']],
    ['[1, [2,], {}]', [[1, [2], {}]]],
    ['{ a: 1, if: [] }', [{ a: 1, if: [] }]],
    ['((3))', [3]],
    ['1 + 1', []],
    ['+1', []],
    ['[, 1]', []],
    ['[...a]', []],
    ['{ a }', []],
    ['{ undefined }', [{ undefined }]],
    ["{ 'a': 1 }", []],
    ['`${1}`', []],
    ['/[,)]/', []],
    ['1, y', [1]],
    ['(a, b) => [a, b]', []],
    ['f(a, b)', []],
  ])('the default %s', (text, constant) => {
    const known = constant.length === 0 ? null : { value: constant[0] }
    expect(parameters(`(x = ${text}) => x`)?.[0]).toEqual(parameter('x', { default: known }))
  })

  it('patterns have names by position, their properties, and hidden defaults', () => {
    expect(parameters('([a, b], { scale = 2, bias, inner: { c } }, { d = 1 } = {}, { e } = { e: 3 }) => 0')).toEqual([
      parameter('arg0'),
      parameter('arg1', {
        properties: [
          { name: 'scale', default: { value: 2 } },
          { name: 'bias', default: null },
          { name: 'inner', default: null },
        ],
      }),
      parameter('arg2', { properties: [{ name: 'd', default: { value: 1 } }] }),
      parameter('arg3', { default: { value: { e: 3 } } }),
    ])
    expect(parameters('([a = 1], { b: [c = 1] }, { d: e = 1 }, { ...f }, { [g]: h = 1 }) => 0')).toEqual([
      parameter('arg0', { hasHiddenDefault: true }),
      parameter('arg1', { properties: [{ name: 'b', default: null }], hasHiddenDefault: true }),
      parameter('arg2', { properties: [{ name: 'd', default: { value: 1 } }] }),
      parameter('arg3'),
      parameter('arg4', { hasHiddenDefault: true }),
    ])
  })

  it.each<[string, number | null]>([
    ['rest[0]; rest[2]', 3],
    ['', 0],
    ['operator.getitem(rest, 1)', 2],
    ['let a = rest[0]; rest = null', 1],
    ['o.rest; ({ rest: rest[1] })', 2],
    ['"rest"; /rest/; `rest ${rest[0]}`', 1],
    ['rest.length', null],
    ['f(rest)', null],
    ['rest[i]', null],
    ['rest[-1]', null],
    ['({ rest })', null],
    ['{ let rest2 = 1, rest = 2 }', null],
    ['((rest = 1) => rest[0])()', null],
    ['a, rest = null', 0],
    ['f(rest = null)', 0],
  ])('a body that reads %s of ...rest', (text, elements) => {
    expect(parameters(`(x, ...rest) => { ${text} }`)?.[1]).toEqual(parameter('rest', { rest: true, elements }))
    expect(oracle(`(x, ...rest) => { ${text} }`)?.parameters[1]?.elements).toBe(elements)
  })

  it.each([
    ['function () { return arguments[0] }', true],
    ['m() { return () => arguments }', true],
    ['function () { return `${arguments}` }', true],
    ['function (x) { return arguments[0] }', false],
    ['() => arguments', false],
    ['function () { function f() { return arguments } return { m() { return arguments } } }', false],
    ['function () { class A { m() { return arguments } } return o.arguments + "arguments" }', false],
    ['function () { return { arguments: 1 } }', false],
  ])('%s reads arguments: %s', (source, expected) => {
    expect(signatureFrom(source)?.readsArguments).toBe(expected)
    expect(oracle(source)?.readsArguments).toBe(expected)
  })

  it('a function whose source is hidden has the parameters arg0, arg1, …', () => {
    const bound = function (this: number, a: number, b: number): number {
      return this + a + b
    }.bind(1)
    expect(signatureOf(bound).parameters).toEqual([parameter('arg0'), parameter('arg1')])
    expect(signatureOf(Math.max).parameters.map((p) => p.name)).toEqual(['arg0', 'arg1'])
    expect(signatureOf(Math.max).readsArguments).toBe(false)
  })

  it('random functions read as acorn reads them', () => {
    let read = 0
    fc.assert(
      fc.property(functionSources, (source) => {
        const expected = oracle(source)
        fc.pre(expected !== null)
        read++
        expect(signatureFrom(source)).toEqual(expected)
      }),
      { numRuns, maxSkipsPerRun: 100 },
    )
    expect(read).toBeGreaterThanOrEqual(numRuns)
  })

  it('every third function in some packages, minified ones among them, reads as acorn reads it', () => {
    const sources = ['acorn', 'fast-check', 'postcss', 'highlight.js', 'es-module-lexer', 'cjs-module-lexer', 'chai', 'parse5'].flatMap(
      functionsInPackage,
    )
    const unlike = third(sources).filter((source) => {
      const expected = oracle(source)
      return expected !== null && JSON.stringify(signatureFrom(source), shown) !== JSON.stringify(expected, shown)
    })
    expect(sources.length).toBeGreaterThan(3000)
    expect(unlike).toEqual([])
  })

  it('the functions and classes of tensorfx read as acorn reads them', () => {
    const sources = new Set(
      Object.values({ ...tensorfx, ...tensorfx.torch, ...tensorfx.nn, ...tensorfx.fx, ...tensorfx.optim })
        .filter((value) => typeof value === 'function')
        .map(String),
    )
    const functions = [...sources].flatMap((source) => functionsIn(`(${source})`))
    // acorn cannot read a constructor outside of its class.
    for (const source of functions) if (!source.startsWith('constructor(')) expect(signatureFrom(source)).toEqual(oracle(source))
    expect(functions.length).toBeGreaterThan(500)
  })
})

/** JSON with everything that it would leave out. */
const shown = (_key: string, value: unknown): unknown => (value === undefined || typeof value === 'bigint' ? String(value) : value)
