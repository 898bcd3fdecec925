// What a file from a stranger can do: nothing but compute with operators. No code of its own runs, no prototype changes, no file is opened.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import { ArgumentError, Tensor, nn, operator, torch } from 'tensorfx'
import { Graph, GraphModule, Interpreter, symbolicTrace, wrap } from 'tensorfx/fx'
import { compareGraphs, graphFromJson, graphToJson } from 'tensorfx/fx/json'
import type { GraphJson, NodeJson } from 'tensorfx/fx/json'
import { CSEPass } from 'tensorfx/fx/passes'
import { graphPage } from 'tensorfx/fx/viewer'
import { loadGraphModule, readSafetensors, saveGraphModule, writeSafetensors } from 'tensorfx/interop'
import { temporaryFolder } from '../helpers/folder.ts'
import { CALLABLE, READABLE } from '../../src/fx/text/allowedNames.ts'
import { getattr } from '../../src/fx/graph/operator.ts'

const KEY = 'tensorfx.graphmodule'

type Part = Omit<NodeJson, 'op' | 'name'>
const node = (op: NodeJson['op'], name: string, target: string, args: Part['args'] = [], kwargs: Part['kwargs'] = {}): NodeJson => ({
  op,
  name,
  target,
  args,
  kwargs,
})
const ref = (name: string) => ({ $node: name })
const input = node('placeholder', 'x', 'x')
const graphJson = (...nodes: readonly NodeJson[]): GraphJson => ({
  version: 2,
  nodes: [input, ...nodes, node('output', 'output', 'output', [ref(nodes.at(-1)?.name ?? 'x')])],
})

/** A GraphModule file with that description; `change` may replace any part. */
function fileOf(
  graph: GraphJson,
  change: Readonly<Record<string, unknown>> = {},
  tensors: readonly (readonly [string, Tensor])[] = [],
  shared: unknown = {},
): Uint8Array {
  const module = { className: 'M', training: true, graph, modules: {}, tensors: {}, ...change }
  return writeSafetensors(tensors, { [KEY]: JSON.stringify({ version: 2, module, shared }) })
}

/** A file whose description has this text in the place of `"HERE"`, for keys that an object literal cannot have. */
function fileWith(change: Readonly<Record<string, unknown>>, text: string, shared: unknown = {}): Uint8Array {
  const module = { className: 'M', training: true, graph: graphJson(), modules: {}, tensors: {}, ...change }
  const json = JSON.stringify({ version: 2, module, shared }).replace('"HERE"', text)
  return writeSafetensors([['a', torch.ones([1])]], { [KEY]: json })
}

const global: { pwned?: boolean } = globalThis as { pwned?: boolean }
const members = (): string =>
  [Object.prototype, Function.prototype, Array.prototype, Tensor.prototype, nn.Module.prototype, GraphModule.prototype]
    .map((p) => Reflect.ownKeys(p).map(String).join())
    .join('|')
const before = members()
const forward = GraphModule.prototype.forward

beforeEach(() => void delete global.pwned)
afterEach(() => {
  expect(global.pwned).toBeUndefined()
  expect(members()).toBe(before)
  expect(GraphModule.prototype.forward).toBe(forward)
})

describe('a graph from a file', () => {
  const evil = 'globalThis.pwned = true'
  /** Ways out of a graph: each ends in a call of Function. */
  const escapes: Readonly<Record<string, readonly [readonly NodeJson[], string]>> = {
    'attributes of a method': [
      [
        node('call_function', 'f', 'builtins.getattr', [ref('x'), 'toArray']),
        node('call_function', 'F', 'builtins.getattr', [ref('f'), 'constructor']),
        node('call_method', 'made', '__call__', [ref('F'), evil]),
        node('call_method', 'ran', '__call__', [ref('made')]),
      ],
      "node 'F' reads the attribute 'constructor'",
    ],
    'a method of every object': [[node('call_method', 'c', 'constructor', [ref('x')])], "node 'c' calls the method 'constructor'"],
    'a method of every function': [
      [node('call_function', 'f', 'builtins.getattr', [ref('x'), 'add']), node('call_method', 'c', 'call', [ref('f')])],
      "node 'c' calls the method 'call'",
    ],
    'a call of a value': [[node('call_method', 'c', '__call__', [ref('x')])], "node 'c' calls the method '__call__'"],
    'a computed name': [
      [node('call_function', 'name', 'operator.add', ['constr', 'uctor']), node('call_function', 'F', 'builtins.getattr', [ref('x'), ref('name')])],
      "node 'F' reads an attribute whose name is computed",
    ],
    'a name in an array': [
      [node('call_function', 'F', 'builtins.getattr', [ref('x'), ['constructor']])],
      'reads an attribute whose name is computed',
    ],
    'a name in keyword arguments': [
      [node('call_function', 'F', 'builtins.getattr', [ref('x')], { name: 'constructor' })],
      'reads an attribute whose name is computed',
    ],
    'an element': [[node('call_function', 'F', 'operator.getitem', [ref('x'), 'constructor'])], "node 'F' reads the element 'constructor'"],
    'a private field': [[node('call_function', 's', 'builtins.getattr', [ref('x'), 'storage'])], "node 's' reads the attribute 'storage'"],
    memory: [[node('call_method', 's', 'realize', [ref('x')])], "node 's' calls the method 'realize'"],
    'disposing of inputs': [[node('call_method', 's', 'dispose', [ref('x')])], "node 's' calls the method 'dispose'"],
    'sorting a shape': [
      [node('call_function', 's', 'builtins.getattr', [ref('x'), 'shape']), node('call_method', 'sorted', 'sort', [ref('s')])],
      "node 'sorted' calls the method 'sort' without a number",
    ],
    'sorting a shape with a module': [[node('call_method', 'sorted', 'sort', [ref('x'), ref('x')])], "calls the method 'sort' without a number"],
    'an attribute of every object': [
      [node('get_attr', 'g', 'constructor.constructor')],
      "node 'g' refers to the attribute 'constructor.constructor'",
    ],
    'a module of every object': [[node('call_module', 'g', '__proto__.forward', [ref('x')])], "node 'g' refers to the attribute '__proto__.forward'"],
    'a function by its global name': [[node('call_function', 'g', 'eval', [evil])], "unknown function 'eval' at node 'g'"],
    'a function of a prototype': [[node('call_function', 'g', 'constructor', [evil])], "unknown function 'constructor' at node 'g'"],
  }
  test.each(Object.entries(escapes))('has no way out through %s', (_, [nodes, why]) => {
    const json = graphJson(...nodes)
    expect(() => graphFromJson(json)).toThrow(why)
    expect(() => graphFromJson(json)).toThrow(ArgumentError)
    expect(() => loadGraphModule(fileOf(json))).toThrow(why)
  })

  it('says how to load what is code, and then loads it', () => {
    const json = graphJson(node('call_method', 'text', 'toString', [ref('x')]))
    expect(() => loadGraphModule(fileOf(json))).toThrow("If you trust its author as the author of a program that you run, pass { trust: 'code' }.")
    expect(loadGraphModule(fileOf(json), { trust: 'code' }).call(torch.tensor(3))).toBe(torch.tensor(3).toString())
    expect(graphFromJson(json, { trust: 'code' }).size).toBe(3)
    const bad = { trust: 'all' } as unknown as { trust: 'code' }
    expect(() => loadGraphModule(fileOf(json), bad)).toThrow("loadGraphModule: trust must be 'data' or 'code', got all")
    expect(() => graphFromJson(json, bad)).toThrow("graphFromJson: trust must be 'data' or 'code', got all")
  })

  it('computed indices read elements, never members of a prototype', () => {
    const name = node('call_function', 'name', 'operator.add', ['constr', 'uctor'])
    for (const value of ['text', { $object: {} }, [1], { $map: [] }]) {
      const gm = new GraphModule({}, graphFromJson(graphJson(name, node('call_function', 'F', 'operator.getitem', [value, ref('name')]))))
      expect([gm.call(torch.ones([1])), new Interpreter(gm).run(torch.ones([1]))]).toEqual([undefined, undefined])
    }
    expect(
      [operator.getitem({ a: 1 }, 'a'), operator.getitem('abc', 1), operator.getitem([1, 2], -1), operator.getitem(torch.tensor([1, 2]), 1)].map(
        Number.isNaN,
      ),
    ).toEqual(Array.from({ length: 4 }, () => false))
  })

  it('cannot change the shape of a tensor', () => {
    const x = torch.ones([9, 10])
    for (const source of [
      node('call_function', 's', 'builtins.getattr', [ref('x'), 'shape']),
      node('call_method', 's', 'size', [ref('x')]),
      node('call_method', 's', 'stride', [ref('x')]),
    ])
      for (const write of [
        node('call_function', 'w', 'operator.setitem', [ref('s'), 0, 1000]),
        node('call_method', 'w', 'sort', [ref('s'), 0]),
        node('call_method', 'w', 'sort', [ref('s')], { dim: 0 }),
      ]) {
        const gm = new GraphModule({}, graphFromJson(graphJson(source, write)))
        expect(() => gm.call(x)).toThrow(/cannot be changed|comparison function/)
        expect([x.shape, x.strides]).toEqual([
          [9, 10],
          [10, 1],
        ])
      }
    const sorted = graphFromJson(
      graphJson(node('call_method', 'w', 'sort', [ref('x'), 0]), node('call_function', 'v', 'operator.getitem', [ref('w'), 0])),
    )
    expect((new GraphModule({}, sorted).call(torch.tensor([2, 1])) as Tensor).toArray()).toEqual([1, 2])
  })

  it('computed keys set elements, never a prototype', () => {
    const name = node('call_function', 'name', 'operator.add', ['__pro', 'to__'])
    const gm = new GraphModule(
      {},
      graphFromJson(graphJson(name, node('call_function', 'set', 'operator.setitem', [ref('x'), ref('name'), { $object: { polluted: true } }]))),
    )
    const given = {}
    expect(() => gm.call(given)).toThrow("an attribute cannot be called '__proto__'")
    expect(Object.getPrototypeOf(given)).toBe(Object.prototype)
  })

  it('reads attributes by own property, also after an edit', () => {
    const graph = graphFromJson(graphJson(node('get_attr', 'g', 'weight')))
    const gm = new GraphModule({ weight: torch.ones([1]) }, graph)
    for (const path of ['constructor', '__proto__', 'weight.constructor', 'forward.constructor', 'toString'])
      expect(gm.attribute(path)).toBeUndefined()
    expect(() => new GraphModule({}, graphFromJson(graphJson(node('get_attr', 'g', 'weight'))))).toThrow('was not provided in `root`')
    expect(() => new GraphModule(new nn.ReLU(), graphFromJson(graphJson(node('get_attr', 'g', 'extraRepr'))))).toThrow('was not provided in `root`')
    const fresh = new Graph()
    fresh.output(fresh.getAttr('toString'))
    expect(() => new GraphModule({}, fresh)).toThrow('was not provided in `root`')
  })

  it('stays data while it is edited: what passes make of it can be saved and loaded as data', () => {
    const traced = symbolicTrace((x: Tensor) =>
      x
        .add(1)
        .relu()
        .reshape([-1])
        .sum()
        .mul(x.shape[0] ?? 1),
    )
    const gm = loadGraphModule(saveGraphModule(traced))
    new CSEPass().call(gm)
    gm.graph.eliminateDeadCode()
    gm.recompile()
    expect(compareGraphs(gm.graph, graphFromJson(graphToJson(gm.graph)))).toBeNull()
  })

  it('may call functions that this program registered', () => {
    const twice = wrap((x: Tensor) => x.mul(2), { name: 'trustTwice' })
    const gm = loadGraphModule(saveGraphModule(symbolicTrace((x) => twice(x as Tensor))))
    expect((gm.call(torch.ones([1])) as Tensor).toArray()).toEqual([2])
  })
})

describe('the names that a graph from a file may use', () => {
  const x = torch.ones([2])
  /** Members of containers, which are no members of tensors. */
  const containers = ['at', 'concat', 'includes', 'indexOf', 'get', 'has', 'length']

  it('are members of tensors or of containers', () => {
    for (const name of [...CALLABLE, ...READABLE]) if (!containers.includes(name)) expect(name in x, name).toBe(true)
  })

  it('include every method of the operator table, and no other member of an object or a function', () => {
    const load = (name: string): Graph => graphFromJson(graphJson(node('call_method', 'm', name, [ref('x')])))
    const refused = Object.getOwnPropertyNames(Tensor.prototype).filter((name) => {
      try {
        load(name)
        return false
      } catch {
        return true
      }
    })
    // A new member of tensors is refused until it is added to CALLABLE. Refused are properties, what only code needs, what would free or replace the memory of the caller's tensors, and `sort` without a dimension.
    expect(refused.sort()).toEqual(
      [
        'H',
        'asParameter',
        'constructor',
        'contiguousLayout',
        'copyFrom',
        'device',
        'dispose',
        'dtype',
        'isFake',
        'isLeaf',
        'itemAsync',
        'mH',
        'mT',
        'ndim',
        'newTensor',
        'numel',
        'offset',
        'realize',
        'registerHook',
        'registerPostAccumulateGradHook',
        'requiresGrad',
        'shape',
        'sizes',
        'sort',
        'steps',
        'strides',
        'symNumel',
        'symOffset',
        'symSizes',
        'symSteps',
        'toArrayAsync',
        'toBigIntArrayAsync',
        'toJSON',
        'toString',
        'toTypedArrayAsync',
        'transfer',
        'valueOf',
      ].sort(),
    )
    for (const name of [...Object.getOwnPropertyNames(Object.prototype), ...Object.getOwnPropertyNames(Function.prototype)])
      expect(() => load(name), name).toThrow(ArgumentError)
  })

  it('cover what traces record', () => {
    const gm = symbolicTrace((x: Tensor) => {
      const [a, b] = x.chunk(2)
      return [x.shape[0], x.T, (a as Tensor).view([x.size(0), -1]), (b as Tensor).dtype, x.numel, x.ndim]
    })
    expect([...gm.graph.nodes].some((n) => n.target === getattr)).toBe(true)
    expect(compareGraphs(gm.graph, graphFromJson(graphToJson(gm.graph)))).toBeNull()
  })
})

describe('loading a file', () => {
  const proto = '{"__proto__":{"polluted":true}}'
  const inner = '{"__proto__":{"parameter":false,"requiresGrad":false}}'
  test.each([
    ['attributes', fileWith({ attributes: 'HERE' }, proto)],
    ['attributes, deeper', fileWith({ attributes: { a: { $object: 'HERE' } } }, '{"__proto__":1}')],
    ['tensors', fileWith({ tensors: 'HERE' }, inner)],
    ['modules', fileWith({ modules: 'HERE' }, '{"__proto__":{"layer":{"class":"ReLU","args":[]},"training":true}}')],
    ['meta', fileWith({ meta: 'HERE' }, '{"__proto__":{"$object":{"polluted":true}}}')],
    [
      'shared tensors',
      writeSafetensors([], {
        [KEY]: `{"version":2,"module":${JSON.stringify({ className: 'M', training: true, graph: graphJson(), modules: {}, tensors: {} })},"shared":{"__proto__":"a"}}`,
      }),
    ],
    ['the meta of a node', fileWith({ graph: { ...graphJson(), nodes: [{ ...input, meta: 'HERE' }] } }, '{"__proto__":{"$object":{}}}')],
    ['keyword arguments', fileWith({ graph: { version: 2, nodes: [{ ...input, kwargs: 'HERE' }] } }, '{"__proto__":1}')],
  ])('refuses the key __proto__ in %s', (_, bytes) => {
    expect(() => loadGraphModule(bytes)).toThrow("the key '__proto__'")
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  const one = torch.ones([1])
  const parameter = { parameter: true, requiresGrad: false }
  const buffer = { parameter: false, requiresGrad: false }
  test.each<[string, Readonly<Record<string, unknown>>, unknown]>([
    ['forward', { tensors: { forward: parameter } }, {}],
    ['__proto__.forward', { tensors: { '__proto__.forward': parameter } }, {}],
    ['constructor.prototype', { tensors: { 'constructor.prototype': buffer } }, {}],
    ['call', { attributes: { call: 1 } }, {}],
    ['graph', { attributes: { graph: { $object: {} } } }, {}],
    ['toString', { modules: { toString: { layer: { class: 'ReLU', args: [] }, training: true } } }, {}],
    ['__proto__.polluted', { tensors: { a: buffer } }, { '__proto__.polluted': 'a' }],
    ['meta', { tensors: { meta: buffer } }, {}],
    ['training', { attributes: { training: 3 } }, {}],
  ])('refuses the path %s of an attribute', (path, change, shared) => {
    const bytes = fileOf(
      graphJson(),
      change,
      [
        ['a', one],
        [path, one],
      ],
      shared,
    )
    expect(() => loadGraphModule(bytes)).toThrow('cannot be called')
  })

  const leaf = null
  const nested = { array: [leaf] }
  test.each<[string, object, string]>([
    ...['x = pwned()', 'a-b', '1x', '', 'pytree', 'inSpec', 'torch', ') { pwned() } function f('].map((name): [string, object, string] => [
      `the input '${name}'`,
      { origArgs: [name], inSpec: { array: [nested] }, outSpec: 'plain', patterns: [] },
      'which cannot be the name of a parameter',
    ]),
    [
      'a pattern of nested values',
      { origArgs: ['o'], inSpec: { array: [{ object: [['a', nested]] }] }, outSpec: 'plain', patterns: [0] },
      'is not an object of plain values',
    ],
    [
      'a pattern of every object',
      { origArgs: ['o'], inSpec: { array: [{ object: [['constructor', leaf]] }] }, outSpec: 'plain', patterns: [0] },
      'must be a name that not every object has',
    ],
    [
      'a pattern that is missing',
      { origArgs: ['x'], inSpec: { array: [leaf] }, outSpec: 'plain', patterns: [3] },
      'patterns has a position that origArgs lacks',
    ],
    [
      'too few inputs',
      { origArgs: ['x', 'y'], inSpec: { array: [leaf] }, outSpec: 'plain', patterns: [] },
      'inSpec must be the structure of an array of 2 inputs',
    ],
    ['another structure', { origArgs: [], inSpec: { tuple: [] }, outSpec: 'plain', patterns: [] }, 'one of the keys array, object, map'],
  ])('refuses a code generator with %s', (_, codegen, why) => {
    const bytes = fileOf(graphJson(), { codegen: JSON.parse(JSON.stringify(codegen)) as unknown })
    expect(() => loadGraphModule(bytes)).toThrow(why)
  })

  it('refuses sizes for which the file has no data, before it takes memory', () => {
    for (const [layer, args] of [
      ['Linear', [50_000, 50_000]],
      ['Embedding', [1e9, 1e9]],
      ['Conv2d', [10_000, 10_000, [100, 100]]],
      ['MultiheadAttention', [30_000, 10]],
    ] as const) {
      const used = process.memoryUsage()
      const bytes = fileOf(graphJson(), { modules: { fc: { layer: { class: layer, args }, training: true } } }, [
        ['fc.weight', one],
        ['fc.bias', one],
      ])
      expect(() => loadGraphModule(bytes)).toThrow(/the file|in the file|cannot be made/)
      const now = process.memoryUsage()
      expect(now.heapUsed + now.external + now.arrayBuffers - used.heapUsed - used.external - used.arrayBuffers).toBeLessThan(64e6)
    }
  })

  it('refuses what is nested too deep, has too many parts, or a key twice', () => {
    const text = (graph: string): Uint8Array => writeSafetensors([], { [KEY]: `{"version":2,"module":{"graph":${graph}}}` })
    expect(() => loadGraphModule(text('['.repeat(100_000)))).toThrow('is nested more than 200 deep')
    expect(() => loadGraphModule(text(`[${'[],'.repeat(600_000)}[]]`))).toThrow('has too many arrays and objects')
    expect(() => loadGraphModule(text('{"nodes":[],"nodes":[]}'))).toThrow("has the key 'nodes' twice")
    let deep: unknown = 1
    for (let i = 0; i < 5000; i++) deep = [deep]
    expect(() => graphFromJson(graphJson(node('call_method', 'r', 'add', [ref('x'), deep as never])))).toThrow('nested more than 200 deep')
    const cyclic: unknown[] = []
    cyclic.push(cyclic)
    expect(() => graphFromJson(graphJson(node('call_method', 'r', 'add', [ref('x'), cyclic as never])))).toThrow('nested more than 200 deep')
  })

  it('names the place of what is wrong', () => {
    const wrong =
      (change: Partial<Record<keyof NodeJson, unknown>>): (() => Graph) =>
      () =>
        graphFromJson(graphJson({ ...node('call_method', 'r', 'add', [ref('x')]), ...change } as NodeJson))
    expect(wrong({ op: 'call' })).toThrow(
      "graphFromJson: nodes[1].op must be one of placeholder, get_attr, call_function, call_module, call_method, output, got 'call'.",
    )
    expect(wrong({ args: [ref('x'), { $tuple: [1, { $slice: 3 }] }] })).toThrow(
      'graphFromJson: nodes[1].args[1].$tuple[1].$slice must be an array, got 3.',
    )
    expect(wrong({ kwargs: { 'a-b': {} } })).toThrow('nodes[1].kwargs["a-b"] must be an object with one of the keys $node, $number')
    expect(wrong({ kwargs: [] })).toThrow('nodes[1].kwargs must be an object, got an array of length 0')
    expect(wrong({ meta: { a: ref('x') } })).toThrow('nodes[1].meta.a.$node must be a value without nodes')
    expect(wrong({ stack: [0] })).toThrow('a stack refers to frame 0')
    expect(wrong({ type: 3 })).toThrow('nodes[1].type must be a string, got 3')
    expect(wrong({ name: 'x' })).toThrow("two nodes are called 'x' (nodes[1])")
    expect(wrong({ op: 'output', args: [] })).toThrow("node 'r' (output) cannot have 0 args")
  })
})

describe('stack frames from a file', () => {
  const folder = temporaryFolder('trust-')
  const secret = join(folder, 'secret.txt')
  writeFileSync(secret, 'the secret line\n'.repeat(3))
  const frame = { file: secret, line: 2, column: 1, fn: 'f' }

  it('open no file: not in code, errors, pages, texts and source maps', () => {
    const json: GraphJson = { ...graphJson({ ...node('call_method', 'r', 'reshape', [ref('x'), [7, 7]]), stack: [0] }), frames: [frame] }
    const texts = `  File "${secret}", line 2, in f\n`
    for (const graph of [json, { ...json, nodes: json.nodes.map((n) => (n.name === 'r' ? { ...n, stack: texts } : n)) }]) {
      const gm = new GraphModule({}, graphFromJson(graph))
      const [call] = gm.graph.findNodes({ op: 'call_method' })
      const seen = [
        gm.printReadable({ print: false }),
        String(call?.stackTrace),
        graphPage(gm),
        JSON.stringify(gm.graph.generateCode().sourceMap),
        JSON.stringify(graphToJson(gm.graph)),
        ...[gm, new Interpreter(gm)].map((run) => {
          try {
            return String(run instanceof GraphModule ? run.call(torch.ones([1])) : run.run(torch.ones([1])))
          } catch (error) {
            return String(error)
          }
        }),
      ]
      for (const text of seen) expect(text).not.toContain('the secret line')
      expect(seen.at(-1)).toContain('secret.txt')
      expect(gm.graph.generateCode().sourceMap).toBeNull()
    }
    expect(readFileSync(secret, 'utf8')).toContain('the secret line')
  })

  it('bring the lines along that were recorded with them', () => {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x))
    const [relu] = graphFromJson(graphToJson(gm.graph)).findNodes({ op: 'call_function', target: torch.relu })
    expect(String(relu?.stackTrace)).toContain('torch.relu(x)')
    const { metadata } = readSafetensors(saveGraphModule(gm))
    expect(metadata[KEY]).toContain('torch.relu(x))')
  })
})
