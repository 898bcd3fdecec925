// A graph built and edited by hand, step by step as PyTorch's golden did.
import { describe, expect, it, vi } from 'vitest'
import { nn, operator, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphError, GraphModule, Slice, makeProxy, mapAggregate, mapArg, nodeOf, symbolicTrace, tuple } from 'tensorfx/fx'
import type { Argument, Kwargs, Node, Proxied } from 'tensorfx/fx'
import { treeFlatten, treeMap, treeUnflatten } from 'tensorfx/pytree'
import { removedNodes } from '../helpers/deadCode.ts'
import { readExtra } from './golden.ts'
import type { GoldenGraph } from './golden.ts'

const golden = readExtra<{
  build: GoldenGraph
  format_node: readonly string[]
  all_input_nodes: Readonly<Record<string, readonly string[]>>
  graph_copy: { str: string }
  replace_input_with: GoldenGraph
  replace_all_uses: string
  erase: GoldenGraph
  insert: GoldenGraph
  is_impure: Readonly<Record<string, boolean>>
  dce: readonly [boolean, string]
}>('manual_graph')

function build(): { g: Graph; x: Node; a: Node; b: Node; c: Node } {
  const g = new Graph()
  const x = g.placeholder('x')
  const w = g.placeholder('w', 'torch.Tensor')
  const d = g.placeholder('d', null, 3)
  const a = g.callFunction(torch.add, [x, w], { alpha: 2 })
  const b = g.callMethod('view', [a, -1], {}, 'torch.Tensor')
  const c = g.callFunction(operator.mul, [b, d])
  g.output({ r: c, s: tuple(a, [b]) })
  return { g, x, a, b, c }
}

describe('a graph by hand', () => {
  it('reads and changes as PyTorch’s does', () => {
    const { g, x, a, b, c } = build()
    const gm = new GraphModule({}, g, 'Named')
    expect(gm.className).toBe('Named')
    expect(String(g)).toBe(golden.build.str_graph)
    expect([...g.nodes].map((n) => n.formatNode())).toEqual(golden.format_node)
    expect(Object.fromEntries([...g.nodes].map((n) => [n.name, n.allInputNodes.map((i) => i.name)]))).toEqual(golden.all_input_nodes)
    const copy = new Graph()
    copy.graphCopy(g, new Map())
    expect(String(copy)).toBe(golden.graph_copy.str)
    c.replaceInputWith(b, a)
    expect(String(g)).toBe(golden.replace_input_with.str_graph)
    b.replaceAllUsesWith(x)
    expect(String(g)).toBe(golden.replace_all_uses)
    g.eraseNode(b)
    expect(String(g)).toBe(golden.erase.str_graph)
    g.insertingBefore(c, () => g.createNode('call_function', torch.neg, [x], {}, 'my name!'))
    g.insertingAfter(x, () => g.createNode('call_function', torch.neg, [x], {}, 'neg'))
    expect(String(g)).toBe(golden.insert.str_graph)
    expect(Object.fromEntries([...g.nodes].map((n) => [n.name, n.isImpure()]))).toEqual(golden.is_impure)
    expect(g.eliminateDeadCode()).toBe(golden.dce[0])
    expect(String(g)).toBe(golden.dce[1])
    g.lint()
  })

  it('test_all_input_nodes: each once, arguments first', () => {
    const g = new Graph()
    const x = g.placeholder('x')
    const y = g.placeholder('y')
    const node = g.callFunction(torch.add, [[x, [y, x]], y], { alpha: x })
    expect(node.allInputNodes).toEqual([x, y])
    expect([...x.users]).toEqual([node])
  })

  it('test_erase_node_error, test_remove_uses: a used node stays; users follow', () => {
    const { g, a, b, c } = build()
    const before = String(g)
    expect(() => g.eraseNode(a)).toThrow('Tried to erase Node add but it still had 2 users in the graph')
    expect(String(g)).toBe(before)
    expect([...b.users].map((n) => n.name)).toEqual(['mul', 'output'])
    g.outputNode().args = [c]
    expect([...b.users]).toEqual([c])
  })

  it('test_remove_uses_with_custom_filter: only the users that the filter takes', () => {
    const g = new Graph()
    const x = g.placeholder('x')
    const relu = g.callFunction(torch.relu, [x])
    const neg = g.callFunction(torch.neg, [relu])
    g.output(neg)
    relu.replaceAllUsesWith(x, (user) => user !== neg)
    expect([...relu.users]).toEqual([neg])
    relu.replaceAllUsesWith(x)
    g.eraseNode(relu)
    expect([...x.users]).toEqual([neg])
  })

  it('test_update_args_api, test_update_kwargs_api: one argument at a time; users follow', () => {
    const g = new Graph()
    const [x, y, z] = ['x', 'y', 'z'].map((n) => g.placeholder(n)) as [Node, Node, Node]
    const add = g.callFunction(torch.add, [x, y])
    add.updateArg(0, z)
    expect(add.args).toEqual([z, y])
    expect([[...x.users], [...z.users]]).toEqual([[], [add]])
    add.updateKwarg('alpha', 2)
    expect(add.kwargs).toEqual({ alpha: 2 })
    add.insertArg(0, x)
    expect(add.args).toEqual([x, z, y])
    expect(() => add.updateArg(7, x)).toThrow('has 3 args, so there is none at index 7')
    expect(() => add.insertArg(-1, x)).toThrow('index must be between 0 and 3')
  })

  it('test_no_mutation: arguments cannot be changed in place (difference: frozen-arguments)', () => {
    const { a } = build()
    const args = a.args as unknown[]
    for (const change of [() => args.push(1), () => args.pop(), () => args.splice(0, 1), () => args.sort(), () => args.fill(0)])
      expect(change).toThrow(GraphError)
    expect(() => args.push(1)).toThrow(
      'push: the arguments of a node cannot be changed in place, because the users of its inputs depend on them; assign a new array (node.args = [...node.args, x]), or call updateArg or insertArg.',
    )
    expect(() => (args[0] = 1)).toThrow(TypeError)
    expect([Array.isArray(args), args.constructor === Array, args.map((arg) => String(arg))]).toEqual([true, true, a.args.map(String)])
    expect(() => Object.assign(a.kwargs, { alpha: 3 })).toThrow(TypeError)
  })

  it('test_move_before, test_prepend_self: nodes move; before itself only warns', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const g = new Graph()
    const x = g.placeholder('x')
    const relu = g.callFunction(torch.relu, [x])
    const neg = g.callFunction(torch.neg, [x])
    g.output(tuple(relu, neg))
    relu.prepend(neg)
    expect([...g.nodes].map((n) => n.name)).toEqual(['x', 'neg', 'relu', 'output'])
    expect(neg.isBefore(relu)).toBe(true)
    relu.prepend(relu)
    expect(warn).toHaveBeenCalledOnce()
    warn.mockRestore()
    expect(() => relu.prepend(new Graph().placeholder('y'))).toThrow('Attempting to move a Node into a different Graph')
  })

  it('test_insertion_point, test_multi_insert_point: scopes nest and end', () => {
    const gm = symbolicTrace((x) => torch.neg(torch.relu(x as Tensor)))
    const [relu] = gm.graph.findNodes({ op: 'call_function', target: torch.relu })
    const order: string[] = []
    gm.graph.insertingAfter(relu ?? null, () => {
      const exp = gm.graph.callFunction(torch.exp, [relu ?? null])
      gm.graph.insertingBefore(exp, () => gm.graph.callFunction(torch.sin, [relu ?? null]))
      gm.graph.callFunction(torch.cos, [exp])
    })
    for (const node of gm.graph.nodes) order.push(node.name)
    expect(order).toEqual(['x', 'relu', 'sin', 'exp', 'cos', 'neg', 'output'])
    gm.graph.lint()
  })

  it('nodes that are made behind a node stand there in their order (difference: insert-after-in-order)', () => {
    const { g, a, x } = build()
    g.insertingAfter(a, () => g.callFunction(torch.neg, [g.callFunction(torch.relu, [x])]))
    expect([...g.nodes].map((n) => n.name)).toEqual(['x', 'w', 'd', 'add', 'relu', 'neg', 'view', 'mul', 'output'])
    g.insertingAfter(null, () => g.callFunction(torch.exp, [x]))
    g.insertingBefore(null, () => g.placeholder('first'))
    expect([g.first?.name, g.last?.name]).toEqual(['first', 'exp'])
  })

  it('an erased node is no place to insert, and a scope that stands there goes on behind it', () => {
    const { g, x } = build()
    const [one, two] = g.insertingAfter(x, () => [g.callFunction(torch.relu, [x]), g.callFunction(torch.neg, [x])]) as [Node, Node]
    g.insertingBefore(one, () => {
      g.insertingBefore(x, () => g.eraseNode(one))
      g.callFunction(torch.exp, [x])
    })
    expect([...g.nodes].map((n) => n.name).slice(0, 3)).toEqual(['x', 'exp', 'neg'])
    const before = String(g)
    for (const edit of [() => g.insertingBefore(one), () => g.insertingAfter(one), () => one.prepend(two), () => one.append(two)]) {
      expect(edit).toThrow(GraphError)
      expect(String(g)).toBe(before)
    }
    expect([...g.nodes.reversed()].length).toBe(g.nodes.length)
    g.lint()
  })

  it('a node that cannot be made takes no name', () => {
    const g = new Graph()
    const x = g.placeholder('x')
    for (const target of ['relu', 3, null]) expect(() => g.createNode('call_function', target as never, [x], {}, 'relu')).toThrow(GraphError)
    expect(() => g.createNode('call_function', torch.relu, x as never)).toThrow('args must be an array')
    expect(() => g.createNode('call_function', 3 as never)).toThrow('has type number but a function is expected')
    expect([x.users.size, g.callFunction(torch.relu, [x]).name]).toEqual([0, 'relu'])
  })

  it('a hook or a filter that throws leaves the graph as it was', () => {
    const { g, a, b, x } = build()
    const gm = new GraphModule({}, g)
    const before = String(g)
    {
      const no = (): never => {
        throw new Error('no')
      }
      using _create = gm.registerCreateNodeHook(no)
      using _erase = gm.registerEraseNodeHook(no)
      expect(() => g.insertingBefore(a, () => g.callFunction(torch.relu, [x]))).toThrow('no')
      expect(String(g)).toBe(before)
      const dead = g.insertingBefore(a, () => {
        _create()
        return g.callFunction(torch.neg, [x])
      })
      const withDead = String(g)
      expect(() => g.eraseNode(dead)).toThrow('no')
      expect(String(g)).toBe(withDead)
      _erase()
      g.eraseNode(dead)
    }
    let calls = 0
    const failing = (): boolean => {
      if (++calls === 2) throw new Error('second')
      return true
    }
    expect(() => b.replaceAllUsesWith(x, failing, { propagateMeta: true })).toThrow('second')
    expect([String(g), x.meta]).toEqual([before, {}])
    expect(g.findNodes({ op: 'call_function', target: torch.relu })).toEqual([])
    b.meta['k'] = 1
    b.replaceAllUsesWith(x, undefined, { propagateMeta: true })
    expect(x.meta).toEqual({ k: 1 })
    expect(() => b.replaceAllUsesWith(x, undefined, { propagateMeta: true })).toThrow(
      "propagateMeta needs a replacement without meta, but 'x' has some",
    )
  })

  it('test_find_uses: the users of a node, each once, in the order of their first use', () => {
    const graph = new Graph()
    const x = makeProxy(graph.placeholder('x'))
    const y = torch.relu(x as unknown as Tensor)
    const z = operator.add(x, x) as unknown as Tensor
    const u = torch.neg(x as unknown as Tensor)
    graph.output(nodeOf(y.add(z).add(u) as unknown as Proxied))
    graph.lint()
    const names = (node: Node): string[] => [...node.users].map((user) => user.name)
    expect(names(nodeOf(x))).toEqual(['relu', 'add', 'neg'])
    expect(names(nodeOf(z as unknown as Proxied))).toEqual(['add_1'])
    // One of two uses by add goes; a node whose arguments were set comes last.
    nodeOf(z as unknown as Proxied).args = [nodeOf(y as unknown as Proxied), nodeOf(x)]
    expect(names(nodeOf(x))).toEqual(['relu', 'neg', 'add'])
    nodeOf(z as unknown as Proxied).args = [nodeOf(y as unknown as Proxied), 1]
    expect(names(nodeOf(x))).toEqual(['relu', 'neg'])
    expect(names(nodeOf(y as unknown as Proxied))).toEqual(['add_1', 'add'])
    expect(nodeOf(x).users.has(nodeOf(z as unknown as Proxied))).toBe(false)
  })

  it('find_nodes: by op and target, in order; kept right when a target changes', () => {
    const gm = symbolicTrace((x) => torch.relu(torch.neg(torch.relu(x as Tensor))))
    const found = gm.graph.findNodes({ op: 'call_function', target: torch.relu })
    expect(found.map((n) => n.name)).toEqual(['relu', 'relu_1'])
    ;(found[0] as Node).target = torch.sigmoid
    expect(gm.graph.findNodes({ op: 'call_function', target: torch.relu }).map((n) => n.name)).toEqual(['relu_1'])
    expect(gm.graph.findNodes({ op: 'call_function', target: torch.sigmoid }).map((n) => n.name)).toEqual(['relu'])
  })

  it('test_copy_no_remap, test_wrong_topo, test_wrong_target_type: lint names what is wrong', () => {
    const gm = symbolicTrace((x) => torch.relu(x as Tensor))
    const copy = new Graph()
    for (const node of gm.graph.nodes) copy.nodeCopy(node)
    expect(() => copy.lint()).toThrow('does not belong to this Graph, but was used as an argument!')
    const { g, a, c } = build()
    c.append(a)
    expect(() => g.lint()).toThrow('was used before it has been defined!')
    expect(() => g.createNode('call_function', 'add' as never)).toThrow('has type string but a function is expected')
    expect(() => g.createNode('call_method', torch.add)).toThrow('has type function but a string is expected')
    expect(() => g.createNode('nonsense' as never, 'x')).toThrow(GraphError)
  })

  it('test_deepcopy_recursion_depth: a very long graph copies without recursion', () => {
    const g = new Graph()
    let x = g.placeholder('x')
    for (let i = 0; i < 20_000; i++) x = g.callFunction(torch.relu, [x])
    g.output(x)
    const copy = g.deepCopy()
    expect(copy.nodes.length).toBe(g.nodes.length)
    expect([...copy.nodes].every((n, i) => i === 0 || n.op === 'output' || [...n.users].length === 1)).toBe(true)
  })

  it('test_inline_graph: one graph copied into another by hand', () => {
    const inner = symbolicTrace((x) => torch.relu(torch.neg(x as Tensor)))
    const outer = symbolicTrace((y) => torch.exp(y as Tensor))
    const [exp] = outer.graph.findNodes({ op: 'call_function', target: torch.exp })
    outer.graph.insertingBefore(exp ?? null, () => {
      const values = new Map<Node, Node>([[inner.graph.findNodes({ op: 'placeholder' })[0] as Node, exp?.args[0] as Node]])
      exp?.updateArg(0, outer.graph.graphCopy(inner.graph, values as never))
    })
    outer.recompile()
    const x = torch.tensor([-1, 2])
    expect((outer.call(x) as Tensor).toArray()).toEqual(torch.exp(torch.relu(torch.neg(x))).toArray())
  })

  it('test_module_deepcopy_edit_nodes: a copy’s edits are its own', () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU()))
    const copy = gm.deepCopy()
    for (const node of copy.graph.nodes) node.meta['mine'] = true
    const [last] = copy.graph.findNodes({ op: 'call_module', target: '1' })
    last?.replaceAllUsesWith(last.args[0] as Node)
    copy.graph.eraseNode(last as Node)
    copy.recompile()
    expect(gm.graph.nodes.length).toBe(4)
    expect([...gm.graph.nodes].some((n) => 'mine' in n.meta)).toBe(false)
    const x = torch.tensor([[1, -1]])
    expect((gm.call(x) as Tensor).shape).toEqual([1, 2])
  })

  it('test_hooks_for_node_update: all hooks hear of nodes that come, go and are replaced, until they are taken off', () => {
    const gm = symbolicTrace((a: Tensor, b: Tensor, c: Tensor) => torch.nn.functional.linear(a, b).add(c).cos())
    const heard: string[] = []
    const listen = (name: string): (() => void)[] => [
      gm.registerCreateNodeHook((node) => heard.push(`${name} +${node.name}`)),
      gm.registerEraseNodeHook((node) => heard.push(`${name} -${node.name}`)),
      gm.registerReplaceNodeHook((old, by, user) => heard.push(`${name} ${old.name}>${by} in ${user.name}`)),
    ]
    const edit = (node: Node): Node => {
      const copy = gm.graph.insertingAfter(node, () => gm.graph.nodeCopy(node))
      node.replaceAllUsesWith(copy)
      gm.graph.eraseNode(node)
      return copy
    }
    const [first, second] = [listen('1'), listen('2')]
    const copy = edit(gm.graph.findNodes({ op: 'placeholder' })[0] as Node)
    expect(heard.splice(0)).toEqual(['1 +a_1', '2 +a_1', '1 a>a_1 in linear', '2 a>a_1 in linear', '1 -a', '2 -a'])
    for (const remove of first) remove()
    const again = edit(copy)
    expect(heard.splice(0)).toEqual(['2 +a_2', '2 a_1>a_2 in linear', '2 -a_1'])
    again.name = 'other'
    expect(heard.splice(0)).toEqual(['2 a_2>other in linear'])
    for (const remove of second) remove()
    const last = edit(again)
    expect(heard).toEqual([])
    {
      using _ = gm.registerEraseNodeHook((node) => heard.push(`scoped -${node.name}`))
      edit(edit(last))
    }
    expect(heard.splice(0)).toEqual(['scoped -other', 'scoped -other_1'])
    expect(() => gm.registerCreateNodeHook('no' as never)).toThrow("registerCreateNodeHook: argument 'hook' must be a function, got 'no'")
  })

  it('dead code: what writes, asserts or is random stays; in-place methods too (difference: in-place-stays)', () => {
    const g = new Graph()
    const x = g.placeholder('x')
    g.placeholder('unused')
    g.callFunction(torch.neg, [x])
    g.callMethod('add_', [x, 1])
    g.callFunction(torch.rand, [[2]])
    g.output(x)
    expect(removedNodes(g)).toEqual(['neg'])
    expect([...g.nodes].map((n) => n.name)).toEqual(['x', 'unused', 'add_', 'rand', 'output'])
    expect(removedNodes(g, () => false)).toContain('rand')
  })

  it('test_graph_fns: built node by node, it runs', () => {
    const g = new Graph()
    const a = g.placeholder('a')
    const b = g.callModule('linear', [a])
    const c = g.getAttr('bias')
    const d = g.callMethod('add', [b, c])
    g.output(g.callFunction(torch.sin, [d]))
    const linear = new nn.Linear(3, 4)
    const bias = torch.rand([4])
    const gm = new GraphModule(Object.assign(new nn.Identity(), { linear, bias }), g)
    gm.graph.lint()
    const input = torch.rand([3])
    expect((gm.call(input) as Tensor).toArray()).toEqual(torch.sin(linear.call(input).add(bias)).toArray())
  })

  it('test_replace_uses: another operation takes the place of one', () => {
    const gm = symbolicTrace((x: Tensor) => torch.relu(torch.relu(x).add(1)))
    for (const node of gm.graph.findNodes({ op: 'call_function', target: torch.relu })) {
      const sigmoid = gm.graph.insertingBefore(node, () => gm.graph.callFunction(torch.sigmoid, node.args))
      expect(node.replaceAllUsesWith(sigmoid)).toEqual([...sigmoid.users])
      gm.graph.eraseNode(node)
    }
    gm.graph.lint()
    gm.recompile()
    const x = torch.tensor([-1, 2])
    expect((gm.call(x) as Tensor).toArray()).toEqual(torch.sigmoid(torch.sigmoid(x).add(1)).toArray())
  })

  it('test_replace_input: one user uses another value, the others stay', () => {
    const g = new Graph()
    const [x, y] = ['x', 'y'].map((n) => g.placeholder(n)) as [Node, Node]
    const b = g.callFunction(torch.relu, [x])
    const out = g.callFunction(torch.cat, [[b, x, b]], { dim: 0 })
    g.output(out)
    out.replaceInputWith(b, y)
    expect([out.args, [...b.users], [...y.users]]).toEqual([[[y, x, y]], [], [out]])
    g.lint()
    const [p, q] = [torch.tensor([1]), torch.tensor([2])]
    expect((new GraphModule({}, g).call(p, q) as Tensor).toArray()).toEqual([2, 1, 2])
  })

  it('test_reassign_args_kwargs_uses: users follow when arguments are assigned', () => {
    const g = new Graph()
    const [x, y] = ['x', 'y'].map((n) => g.placeholder(n)) as [Node, Node]
    const z = g.callFunction(operator.add, [x, y])
    const zed = g.callFunction(operator.add, [g.callFunction(operator.add, [z, z]), z])
    g.output(zed)
    g.lint()
    zed.args = [zed.args[0] ?? null, x]
    expect([...x.users]).toEqual([z, zed])
    z.args = [y, y]
    expect([[...x.users], [...y.users]]).toEqual([[zed], [z]])
    z.kwargs = { k: { deep: [x] } }
    expect([...x.users]).toEqual([zed, z])
    z.kwargs = {}
    expect([...x.users]).toEqual([zed])
  })

  it('test_insert_arg: at any place, and users are told once', () => {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x))
    gm.registerBuffer('buf', torch.tensor(0))
    const output = gm.graph.outputNode()
    const a = gm.graph.insertingBefore(output, () => gm.graph.getAttr('buf'))
    const [relu] = output.args
    output.insertArg(0, a)
    expect(output.args).toEqual([a, relu])
    output.insertArg(2, a)
    expect(output.args).toEqual([a, relu, a])
    expect([...a.users]).toEqual([output])
    gm.graph.lint()
    for (const index of [-1, 4, 0.5]) expect(() => output.insertArg(index, a)).toThrow('insertArg: index must be between 0 and 3')
    expect(output.args).toHaveLength(3)
  })

  it('test_copy_it: frozen arguments are copied like any others', () => {
    const { g, a } = build()
    const copy = g.deepCopy()
    const [other] = copy.findNodes({ op: 'call_function', target: torch.add }) as [Node]
    expect([other.kwargs, other.args.map(String)]).toEqual([a.kwargs, a.args.map(String)])
    expect(other.args.some((n) => a.args.includes(n))).toBe(false)
    const values = { list: [1, [2, { k: 3 }]], map: { a: [4] } }
    const node = g.callFunction(torch.relu, [values.list], values.map)
    expect(structuredClone([node.args, node.kwargs])).toEqual([[values.list], values.map])
    expect(String(g.nodeCopy(node, (n) => n).args)).toBe(String(node.args))
  })

  it('test_immutable_list_pytree_ops: arguments flatten to their leaves and back, and are frozen again in a node', () => {
    const { g, a } = build()
    const leaf = torch.rand([2])
    const node = g.callFunction(torch.cat, [[a, [leaf, 2]], 0])
    const { leaves, spec } = treeFlatten(node.args)
    expect(leaves).toEqual([a, leaf, 2, 0])
    const back = treeUnflatten(leaves, spec) as readonly Argument[]
    expect(back).toEqual(node.args)
    expect(treeMap(node.args, (value) => (value === leaf ? a : value))).toEqual([[a, [a, 2]], 0])
    node.args = back
    expect([node.args, node.args[0]].map((list) => Object.isFrozen(list))).toEqual([true, true])
  })

  it('test_immutable_dict_pytree_ops: so do options', () => {
    const { g, a, b } = build()
    const leaf = torch.rand([2])
    const node = g.callFunction(torch.cat, [], { tensors: [a], other: { deep: leaf } })
    const { leaves, spec } = treeFlatten(node.kwargs)
    expect(leaves).toEqual([a, leaf])
    node.kwargs = treeUnflatten([b, leaf], spec) as Kwargs
    expect(node.kwargs).toEqual({ tensors: [b], other: { deep: leaf } })
    expect([node.kwargs, node.kwargs['other']].map((options) => Object.isFrozen(options))).toEqual([true, true])
    expect([[...a.users].includes(node), [...b.users].includes(node)]).toEqual([false, true])
  })

  it('nodes compare by their place, and are sorted by it', () => {
    const { g, x, a, b, c } = build()
    expect([a < b, b < a, a <= b, c > x, x.isBefore(c)]).toEqual([true, false, true, true, true])
    b.append(a)
    expect([a < b, a > b]).toEqual([false, true])
    expect([c, a, x, b].sort((p, q) => p.compareTo(q))).toEqual([x, b, a, c])
    expect([`${x}`, String(x), 'n' + x]).toEqual(['x', 'x', 'nx'])
    expect(g.nodes.length).toBe(7)
  })

  it('mapArg and mapAggregate visit nodes, or all leaves, and refuse what is no function', () => {
    const { a, x } = build()
    expect(mapArg([a, [1, { k: a }], new Slice<unknown>(a, null, 2)], () => x)).toEqual([x, [1, { k: x }], new Slice<unknown>(x, null, 2)])
    expect(mapAggregate([1, { k: [2] }], (leaf) => (leaf as number) * 10)).toEqual([10, { k: [20] }])
    expect(() => mapArg([a], 3 as never)).toThrow("mapArg: argument 'fn' must be a function, got 3.")
  })

  it('normalizedArguments gives the call by its schema', () => {
    const { a, b, x } = build()
    expect(a.normalizedArguments({ onlyKwargs: true })).toEqual({ args: [], kwargs: { input: x, other: a.args[1], alpha: 2 } })
    expect(a.normalizedArguments()).toEqual({ args: [x, a.args[1]], kwargs: { alpha: 2 } })
    expect(b.normalizedArguments()).toBeNull()
  })

  it('a graph knows the class of its tracer from the beginning, when it is told', () => {
    expect(new Graph(null, Map).tracerClass).toBe(Map)
    expect(new Graph().tracerClass).toBeNull()
  })
})
