// The parts of printed graphs and generated code: annotations of values, types, Python's notation of literals, and JSON of odd values.
import { afterEach, describe, expect, test } from 'vitest'
import { ArgumentError } from 'tensorfx'
import { Graph } from 'tensorfx/fx'
import { graphFromJson, graphToJson } from 'tensorfx/fx/json'
import type { Node } from 'tensorfx/fx'
import { knownValue } from '../../src/fx/graph/nodeValue.ts'
import { annotation, specText, withEnvironment } from '../../src/fx/text/annotation.ts'
import { pyNumber, pyString } from '../../src/fx/text/format.ts'
import { encodeNote } from '../../src/fx/text/json.ts'
import { typescriptType, valueType, writeHead } from '../../src/fx/text/typeText.ts'

const placeholder = (type: string | null = null, ...fallback: readonly number[]): Node => {
  const node = new Graph().placeholder('x')
  node.type = type
  node.args = fallback
  return node
}

describe('annotations', () => {
  test('dtypes have PyTorch’s short names, and others keep theirs', () => {
    // torch.utils._dtype_abbrs.dtype_abbrs
    const names = {
      bfloat16: 'bf16',
      float64: 'f64',
      float32: 'f32',
      float16: 'f16',
      float8_e4m3fn: 'f8e4m3fn',
      float8_e5m2: 'f8e5m2',
      complex64: 'c64',
      complex128: 'c128',
      int8: 'i8',
      int16: 'i16',
      int32: 'i32',
      int64: 'i64',
      bool: 'b8',
      uint8: 'u8',
      uint16: 'u16',
      uint32: 'u32',
      uint64: 'u64',
      quaternion: 'quaternion',
    }
    for (const [dtype, short] of Object.entries(names)) expect(specText({ dtype, shape: [2, 3] })).toBe(`${short}[2, 3]`)
    expect(specText({ dtype: 'float32', shape: [] })).toBe('f32[]')
  })

  test('strides and devices are shown if asked for and known', () => {
    const spec = { dtype: 'float32', shape: [2, 3], strides: [3, 1], device: 'cpu' }
    const bare = { dtype: 'float32', shape: [2] }
    expect([
      specText(spec),
      specText(spec, { includeStride: true }),
      specText(spec, { includeDevice: true }),
      specText(spec, { includeStride: true, includeDevice: true }),
      specText(bare, { includeStride: true, includeDevice: true }),
    ]).toEqual(['f32[2, 3]', 'f32[2, 3][3, 1]', 'f32[2, 3]cpu', 'f32[2, 3][3, 1]cpu', 'f32[2]'])
  })

  test('lists show what is known of their elements', () => {
    const spec = { dtype: 'int32', shape: [1] }
    expect([specText([spec, spec]), specText([spec, 3]), specText([1, 2]), specText([]), specText([[spec], null])]).toEqual([
      '(i32[1], i32[1])',
      '(i32[1], ?)',
      null,
      null,
      '((i32[1]), ?)',
    ])
  })

  test('what has no shape and dtype has no annotation', () => {
    for (const value of [null, undefined, 3, 'f32', {}, { shape: [1] }, { dtype: 'int32' }, { shape: 2, dtype: 'int32' }, { shape: [2], dtype: 3 }])
      expect(specText(value)).toBeNull()
  })

  test('a node’s value, metadata or example, in this order, else its type', () => {
    const node = placeholder('int')
    expect([knownValue(node), annotation(node)]).toEqual([undefined, 'int'])
    node.meta['example_value'] = { dtype: 'bool', shape: [1] }
    expect(annotation(node)).toBe('b8[1]')
    node.meta['tensor_meta'] = { dtype: 'int32', shape: [2] }
    expect(annotation(node)).toBe('i32[2]')
    node.meta['val'] = { dtype: 'float32', shape: [3] }
    expect(annotation(node)).toBe('f32[3]')
    expect(annotation(placeholder())).toBeNull()
  })

  describe('the environment', () => {
    const names = ['TENSORFX_FX_GRAPH_SHOW_STRIDE', 'TENSORFX_FX_GRAPH_SHOW_DEVICE'] as const
    afterEach(() => {
      for (const name of names) delete process.env[name]
    })

    test('switches strides and devices on with 1, and options come first', () => {
      expect(withEnvironment({})).toEqual({ includeStride: false, includeDevice: false })
      process.env[names[0]] = '1'
      process.env[names[1]] = 'yes'
      expect(withEnvironment({})).toEqual({ includeStride: true, includeDevice: false })
      process.env[names[1]] = '1'
      expect(withEnvironment({ includeStride: false })).toEqual({ includeStride: false, includeDevice: true })
    })
  })
})

describe('types', () => {
  test('Python’s types in TypeScript', () => {
    const pairs: Readonly<Record<string, string>> = {
      int: 'number',
      float: 'number',
      Number: 'number',
      bool: 'boolean',
      str: 'string',
      None: 'null',
      NoneType: 'null',
      Any: 'any',
      'typing.Any': 'any',
      'torch.Tensor': 'Tensor',
      'builtins.int': 'number',
      list: 'any[]',
      List: 'any[]',
      tuple: 'any[]',
      Tuple: 'any[]',
      dict: 'Record<string, any>',
      Dict: 'Record<string, any>',
      'List[int]': 'number[]',
      'list[torch.Tensor]': 'Tensor[]',
      'List[Optional[int]]': '(number | null)[]',
      'Tuple[int, str]': '[number, string]',
      'Tuple[int, ...]': 'number[]',
      'Tuple[()]': '[]',
      'tuple[Tuple[int, int], float]': '[[number, number], number]',
      'Optional[torch.Tensor]': 'Tensor | null',
      'Union[int, str, None]': 'number | string | null',
      'int | None': 'number | null',
      'Dict[str, List[int]]': 'Record<string, number[]>',
      'Callable[[int], str]': 'Callable[[int], str]',
      ' int ': 'number',
      'Map<string, A | B>': 'Map<string, A | B>',
      MyClass: 'MyClass',
    }
    for (const [python, typescript] of Object.entries(pairs)) expect([python, typescriptType(python)]).toEqual([python, typescript])
  })

  test('a value’s type: the node’s own, else what meta says, else that of a default', () => {
    const node = placeholder('int', 5)
    expect(valueType(node)).toBe('number')
    expect([valueType(placeholder(null, 5)), valueType(placeholder())]).toEqual(['number', null])
    const types: readonly (readonly [value: unknown, type: string | null])[] = [
      [1, 'number'],
      ['a', 'string'],
      [true, 'boolean'],
      [{ shape: [1], dtype: 'int32' }, 'Tensor'],
      [[1, 'a'], '[number, string]'],
      [[1, {}], null],
      [[], null],
      [{ shape: [1] }, null],
      [{ dtype: 'int32' }, null],
    ]
    for (const [value, type] of types) {
      const known = placeholder()
      known.meta['val'] = value
      expect(valueType(known)).toBe(type)
    }
  })

  test('heads of functions, without types, with TypeScript’s and in comments', () => {
    const parameters = ['x', 'y = 2', '...rest', '{ a, b = 1 } = {}', '$z /* f32[2] */ = 3']
    const types = ['Tensor', 'number', 'A | B', '{ a: number }', null]
    const head = (style: 'typescript' | 'jsdoc', returns: string | null, usesThis = false): string =>
      writeHead('forward', parameters, { style, parameters: types, returns, usesThis })
    const plain = 'function forward(x, y = 2, ...rest, { a, b = 1 } = {}, $z /* f32[2] */ = 3) {'
    expect(writeHead('forward', parameters, null)).toBe(plain)
    const typed = 'x: Tensor, y: number = 2, ...rest: (A | B)[], { a, b = 1 }: { a: number } = {}, $z: any /* f32[2] */ = 3'
    expect(head('typescript', null)).toBe(`function forward(${typed}) {`)
    expect(head('typescript', 'Tensor', true)).toBe(`function forward(this: any, ${typed}): Tensor {`)
    expect(head('jsdoc', 'Tensor')).toBe(
      [
        '/**',
        ' * @param {Tensor} x',
        ' * @param {number} [y=2]',
        ' * @param {...A | B} rest',
        ' * @param {{ a: number }} [options]',
        ' * @param {any} [$z=3]',
        ' * @returns {Tensor}',
        ' */',
        plain,
      ].join('\n'),
    )
    expect(writeHead('f', [], { style: 'jsdoc', parameters: [], returns: null, usesThis: false })).toBe('function f() {')
    expect(writeHead('f', ["a = '*/'"], { style: 'jsdoc', parameters: ['string'], returns: null, usesThis: false })).toContain("[a='* /']")
  })
})

describe('Python’s notation', () => {
  test('numbers as repr prints them', () => {
    // repr() of CPython
    const pairs: readonly (readonly [number, string])[] = [
      [0, '0'],
      [-0, '-0.0'],
      [12, '12'],
      [1.5, '1.5'],
      [NaN, 'nan'],
      [Infinity, 'inf'],
      [-Infinity, '-inf'],
      [1e-4, '0.0001'],
      [1.5e-5, '1.5e-05'],
      [1e-100, '1e-100'],
      [1e16, '1e+16'],
      [1.5e22, '1.5e+22'],
      [1e100, '1e+100'],
      [-2.5e-7, '-2.5e-07'],
    ]
    for (const [value, text] of pairs) expect(pyNumber(value)).toBe(text)
  })

  test('strings as repr prints them', () => {
    // repr() of CPython
    const pairs: readonly (readonly [string, string])[] = [
      ['', "''"],
      ['a b', "'a b'"],
      ["it's", '"it\'s"'],
      ['say "a"', `'say "a"'`],
      [`it's "a"`, `'it\\'s "a"'`],
      ['a\\b', "'a\\\\b'"],
      ['\n\r\t', "'\\n\\r\\t'"],
      ['\u0001\u007f\u001f', "'\\x01\\x7f\\x1f'"],
      ['größe', "'größe'"],
    ]
    for (const [value, text] of pairs) expect(pyString(value)).toBe(text)
  })
})

describe('JSON', () => {
  test('notes: what JSON can hold, numbers that it cannot, Maps, classes by name', () => {
    class Block {}
    expect(encodeNote([1, 'a', true, null, -1.5])).toEqual([1, 'a', true, null, -1.5])
    expect([NaN, Infinity, -Infinity, -0].map((value) => encodeNote(value))).toEqual([
      { $number: 'NaN' },
      { $number: 'Infinity' },
      { $number: '-Infinity' },
      { $number: '-0' },
    ])
    expect(encodeNote(new Map([['a', [Block, 'path']]]))).toEqual({ $map: [['a', ['Block', 'path']]] })
    expect(encodeNote({ a: { b: [] } })).toEqual({ $object: { a: { $object: { b: [] } } } })
  })

  test('notes: functions, instances and values that contain themselves are left out, with what holds them', () => {
    const cyclic: unknown[] = []
    cyclic.push([cyclic])
    const holder: Record<string, unknown> = {}
    holder['own'] = holder
    for (const value of [() => 1, new Date(), undefined, Symbol('s'), cyclic, holder, [1, () => 1], { a: new Date() }, new Map([[1, undefined]])])
      expect(encodeNote(value)).toBeUndefined()
    const shared = [1]
    expect(encodeNote([shared, shared])).toEqual([[1], [1]])
  })

  test('a function without a registered name is refused', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    graph.output(graph.callFunction(function unregistered() {}, [x]))
    expect(() => graphToJson(graph)).toThrow(
      new ArgumentError(
        "graphToJson: node 'unregistered' calls a function without a registered name ('unregistered'); give it one with fx.wrap(fn, { name }).",
      ),
    )
  })

  test('other data, and newer versions, are refused', () => {
    const message = 'graphFromJson: this is not the JSON of a graph: `version` and `nodes` are missing.'
    const wrong: readonly unknown[] = [
      null,
      3,
      'text',
      undefined,
      {},
      { version: 1 },
      { nodes: [] },
      { version: '1', nodes: [] },
      { version: 1, nodes: {} },
    ]
    for (const json of wrong) expect(() => graphFromJson(json as never)).toThrow(new ArgumentError(message))
    const { version } = graphToJson(new Graph())
    expect(() => graphFromJson({ version: version + 1, nodes: [] } as never)).toThrow(
      `graphFromJson: version ${version + 1} is newer than this tensorfx reads (${version}); update tensorfx.`,
    )
  })
})
