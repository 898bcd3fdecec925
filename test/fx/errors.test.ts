// PyTorch's errors, one by one: what fails there fails here, with its words; what does not, does not. Each exception is a row of the differences.
import { readFileSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import { operator, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, Interpreter, bool, len, math, symbolicTrace, wrap } from 'tensorfx/fx'
import type { Argument, Node } from 'tensorfx/fx'
import { ShapeProp } from 'tensorfx/fx/passes'
import * as nn from 'tensorfx/nn'

const { ones, tensor } = torch
import goldens from '../goldens/fx-extra/errors.json' with { type: 'json' }

interface Golden {
  readonly error?: string
  readonly no_error?: string
}
const golden = Object.fromEntries(Object.entries(goldens).filter(([, v]) => typeof v === 'object')) as Readonly<Record<string, Golden>>

/** What is run, and, where our error or its absence is a difference, what it says (null: nothing is thrown). */
type Case = readonly [run: () => unknown, says?: string | null, difference?: string]

const trace =
  (fn: (...args: never[]) => unknown): (() => unknown) =>
  () =>
    symbolicTrace(fn)

const CONTROL_FLOW = 'symbolically traced variables cannot be used as inputs to control flow'

class Empty extends nn.Module {
  override forward(): void {}
}

function graph(): { g: Graph; x: Node; y: Node } {
  const g = new Graph()
  const x = g.placeholder('x')
  const y = g.callFunction(torch.relu, [x])
  g.output(y)
  return { g, x, y }
}

function moduleGraph(retarget: string): () => unknown {
  return () => {
    const root = new (class extends nn.Module {
      readonly w = new nn.Linear(1, 1)
      override forward(): void {}
    })()
    const g = new Graph()
    const w = g.callModule('w', [g.placeholder('x')])
    g.output(w)
    const gm = new GraphModule(root, g)
    w.target = retarget
    gm.graph.lint()
  }
}

const mm = (x: Tensor, y: Tensor): Tensor => torch.mm(x, y)

const cases: Readonly<Record<string, Case>> = {
  bool: [trace((x: Tensor) => (bool(x.sum().gt(0)) ? x : x.neg()))],
  iter: [
    trace((x: Iterable<Tensor>) => {
      let s: unknown = 0
      for (const v of x) s = v
      return s
    }),
    'Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function argument',
    'pytorch-pages',
  ],
  len: [trace((x: Tensor[]) => x.length), "'length' is not supported in symbolic tracing by default", 'length-for-len'],
  int: [trace((x: number) => Math.trunc(x)), CONTROL_FLOW, 'coercions'],
  float: [trace((x: number) => Number(x)), CONTROL_FLOW, 'coercions'],
  index: [trace((x: number) => [1, 2, 3][x]), CONTROL_FLOW, 'coercions'],
  range_proxy: [trace((x: number) => Array.from({ length: x })), CONTROL_FLOW, 'coercions'],
  contains: [trace((x: object) => 3 in x), 'the properties of a traced value are not known', 'coercions'],
  setitem: [
    trace((x: number[]) => {
      x[0] = 1
      return x
    }),
    'assigning the element [0] of a traced value cannot be recorded',
    'coercions',
  ],
  and: [trace((x: Tensor, y: Tensor) => (bool(x) ? y : x))],
  not: [trace((x: Tensor) => !bool(x))],
  assert: [trace((x: Tensor) => bool(operator.eq(x.shape[0], 3)))],
  varargs: [trace((a: Tensor, { k }: { k: Tensor }) => a.add(k))],
  star_of_proxy: [trace((x: Iterable<Tensor>) => torch.add(...([...x] as [Tensor, Tensor]))), 'Proxy object cannot be iterated', 'pytorch-pages'],
  kwargs_of_proxy: [trace((x: object) => ({ ...x })), 'Proxy object cannot be iterated', 'pytorch-pages'],
  math_sqrt_not_wrapped: [trace((x: number) => math.sqrt(x))],
  return_set: [trace((x: Tensor) => new Set([x, 1])), 'argument of type: Set', 'javascript-classes'],
  unsupported_arg: [trace((x: Tensor) => torch.add(x, new (class Foo {})() as never)), 'argument of type: Foo', 'javascript-classes'],
  node_in_dict_key: [trace((x: Tensor) => new Map([[x, 1]]))],
  torch_ones_of_proxy: [trace((x: Tensor) => torch.ones([x.shape[0] as number]))],
  torch_tensor_of_proxy: [trace((x: number) => tensor(x)), 'tensor', 'coercions'],
  item_is_fine: [trace((x: Tensor) => (x.item() as number) + 1), 'item() asks for the value of a traced tensor', 'reads-refused'],
  call_proxy: [trace((x: (n: number) => unknown) => x(1))],
  print: [
    trace((x: Tensor) => {
      const log = vi.spyOn(console, 'log').mockImplementation(() => {})
      console.log('hello', x)
      log.mockRestore()
      return x
    }),
  ],
  unpack3_ok: [trace(([a, b, c]: [Tensor, Tensor, Tensor]) => a.add(b).add(c))],
  unpack_star: [trace(([a, ...b]: Tensor[]) => [a, b]), 'Proxy object cannot be iterated', 'pytorch-pages'],
  listcomp: [trace((x: Iterable<Tensor>) => Array.from(x, (v) => v)), 'Proxy object cannot be iterated', 'pytorch-pages'],
  numpy_of_proxy: [trace((x: Float32Array) => new Float32Array(x)), "'length' is not supported", 'coercions'],
  trace_non_callable: [() => symbolicTrace(3 as never), "argument 'root' must be a function or a Module, got 3", 'javascript-classes'],
  module_not_submodule: [
    () =>
      symbolicTrace(
        new (class extends nn.Module {
          override forward(x: Tensor): Tensor {
            return new nn.Linear(2, 2).call(x)
          }
        })(),
      ),
    'module Linear is not installed as a submodule',
    'javascript-classes',
  ],
  wrap_not_str: [() => wrap(3 as never), 'Unsupported type for global function! Must be a callable', 'wrap-returns'],
  wrap_in_function: [() => wrap(() => 1, { name: 'test.errors.inFunction' }), null, 'wrap-returns'],
  int_compare: [trace((x: Tensor, n: number) => (n > 2 ? x.view([n, -1]) : x))],
  erase_with_users: [
    () => {
      const { g, y } = graph()
      g.eraseNode(y)
    },
  ],
  arg_from_other_graph_lint: [
    () => {
      const g = new Graph()
      g.placeholder('a')
      g.callFunction(torch.neg, [graph().x])
      g.lint()
    },
    "Argument 'x' of Node 'neg' does not belong to this Graph, but was used as an argument! If you are copying nodes from another graph, make sure to use ``argTransform`` on nodeCopy()",
    'camel-case',
  ],
  lint_topological: [
    () => {
      const g = new Graph()
      const c = g.callFunction(torch.neg, [g.placeholder('b')])
      const d = g.callFunction(torch.relu, [c])
      g.output(d)
      c.prepend(d)
      g.lint()
    },
  ],
  lint_missing_module: [
    () => {
      const g = new Graph()
      g.output(g.callModule('nope', [g.placeholder('x')]))
      return new GraphModule(new Empty(), g)
    },
    'referenced target nope but that target was not provided',
    'javascript-classes',
  ],
  missing_attr: [
    () => {
      const g = new Graph()
      g.output(g.getAttr('nope.w'))
      return new GraphModule(new Empty(), g)
    },
    'referenced target nope.w but that target was not provided',
    'javascript-classes',
  ],
  lint_missing_attr: [
    () => {
      const g = new Graph()
      const w = g.getAttr('w')
      g.output(w)
      const gm = new GraphModule({ w: new nn.Parameter(ones([1])) }, g)
      w.target = 'zz'
      gm.graph.lint()
    },
  ],
  lint_missing_mod: [moduleGraph('zz.q')],
  bad_op: [() => new Graph().createNode('foo' as never, 'bar'), "op 'foo' is not in the legal ops", 'javascript-classes'],
  bad_target_type: [
    () => new Graph().createNode('call_function', 'bar'),
    'target bar has type string but a function is expected',
    'javascript-classes',
  ],
  bad_target_type_method: [
    () => new Graph().createNode('call_method', torch.add),
    'target torch.add has type function but a string is expected',
    'javascript-classes',
  ],
  inserting_before_other_graph: [
    () => {
      const other = graph()
      graph().g.insertingBefore(other.x)
    },
  ],
  append_self_or_other: [() => graph().x.append(graph().x)],
  insert_arg_node_not_tuple: [
    () => {
      const { x, y } = graph()
      y.insertArg(0, x)
    },
  ],
  update_arg: [
    () => {
      const { y } = graph()
      y.insertArg(1, 2)
      y.updateArg(1, 3)
    },
  ],
  update_arg_far: [() => graph().y.updateArg(7, 3), "node 'relu' has 1 args, so there is none at index 7", 'javascript-classes'],
  bool_on_node_meta: [() => Boolean(graph().y)],
  proxy_setattr_via_codegen: [
    trace((x: { foo: number }) => {
      x.foo = 3
      return x
    }),
    "assigning the property 'foo' of a traced value cannot be recorded",
    'coercions',
  ],
  interpreter_failing_node: [
    () => new Interpreter(symbolicTrace(mm)).run(ones([2, 3]), ones([2, 3])),
    'While executing %mm : [num_users=1] = call_function[target=torch.mm](args = (%x, %y), kwargs = {})\nOriginal traceback:\n',
    'stacks-on',
  ],
  interpreter_missing_arg: [() => new Interpreter(symbolicTrace((x: Tensor, y: Tensor) => x.add(y))).run(ones([2]))],
  shape_prop_failing_node: [
    () => new ShapeProp(symbolicTrace(mm)).propagate(ones([2, 3]), ones([2, 3])),
    'While executing %mm : [num_users=1] = call_function[target=torch.mm](args = (%x, %y), kwargs = {})',
    'stacks-on',
  ],
  immutable_list: [
    () => {
      const cat = symbolicTrace((x: Tensor) => torch.cat([x, x])).graph.first?.next as Node
      ;(cat.args[0] as Argument[]).push(1)
    },
    'push: the arguments of a node cannot be changed in place, because the users of its inputs depend on them; assign a new array',
    'frozen-arguments',
  ],
  immutable_dict: [
    () => {
      const sum = symbolicTrace((x: Tensor) => torch.sum(x, { dim: 1 } as never)).graph.first?.next as Node
      ;(sum.kwargs as Record<string, Argument>)['a'] = 1
    },
    'object is not extensible',
    'frozen-arguments',
  ],
  delete_all_unused_submodules: [() => symbolicTrace((x: Tensor) => operator.add(x, len([1]))).deleteAllUnusedSubmodules()],
}

describe('errors', () => {
  it('every case of PyTorch’s has one here', () => expect(Object.keys(cases).toSorted()).toEqual(Object.keys(golden).toSorted()))

  it('every difference has a row', () => {
    const page = readFileSync(new URL('../../docs/differences-from-pytorch.md', import.meta.url), 'utf8')
    const named = Object.values(cases).flatMap(([, says, difference]) => (says === undefined ? [] : [difference]))
    for (const id of named) expect(page).toContain(`| \`${id}\``)
  })

  // Rows that are meant here: (difference: pytorch-pages) (difference: length-for-len) (difference: coercions) (difference: frozen-arguments)
  it.each(Object.keys(cases))('%s', (name) => {
    const [run, says] = cases[name] as Case
    const expected = says === undefined ? golden[name]?.error?.split('\n')[0] : says
    if (expected === undefined || expected === null) expect(run).not.toThrow()
    else expect(run).toThrow(expected)
  })
})
