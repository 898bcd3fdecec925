// A graph built and edited by hand, step by step as PyTorch's golden did.
import { describe, expect, it, vi } from 'vitest'
import { nn, operator, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphError, GraphModule, symbolicTrace, tuple } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
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
    expect(g.eliminateDeadCode().length > 0).toBe(golden.dce[0])
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

  it('test_immutable: arguments cannot be changed in place', () => {
    const { a } = build()
    expect(() => (a.args as unknown[]).push(1)).toThrow(TypeError)
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

  it('test_find_uses, find_nodes: by op and target, in order; kept right when a target changes', () => {
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

  it('hooks hear of nodes that come, go and are replaced (test_node_hook)', () => {
    const gm = symbolicTrace((x) => torch.relu(x as Tensor))
    const heard: string[] = []
    const off = [
      gm.registerCreateNodeHook((node) => heard.push(`+${node.name}`)),
      gm.registerEraseNodeHook((node) => heard.push(`-${node.name}`)),
      gm.registerReplaceNodeHook((old, name, user) => heard.push(`${old.name}>${name} in ${user.name}`)),
    ]
    const [relu] = gm.graph.findNodes({ op: 'call_function', target: torch.relu }) as [Node]
    const neg = gm.graph.insertingAfter(relu, () => gm.graph.callFunction(torch.neg, [relu.args[0] as Node]))
    relu.replaceAllUsesWith(neg)
    gm.graph.eraseNode(relu)
    expect(heard).toEqual(['+neg', 'relu>neg in output', '-relu'])
    for (const remove of off) remove()
    gm.graph.eraseNode(gm.graph.insertingAfter(neg, () => gm.graph.callFunction(torch.exp, [neg])))
    expect(heard).toHaveLength(3)
  })

  it('dead code: what writes, asserts or is random stays; in-place methods too (difference: in-place-stays)', () => {
    const g = new Graph()
    const x = g.placeholder('x')
    g.placeholder('unused')
    g.callFunction(torch.neg, [x])
    g.callMethod('add_', [x, 1])
    g.callFunction(torch.rand, [[2]])
    g.output(x)
    expect(g.eliminateDeadCode().map((n) => n.name)).toEqual(['neg'])
    expect([...g.nodes].map((n) => n.name)).toEqual(['x', 'unused', 'add_', 'rand', 'output'])
    expect(g.eliminateDeadCode(() => false).map((n) => n.name)).toContain('rand')
  })

  it('submodules are added, deleted, and swept (test_delete_unused_submodules_leaf)', () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU()))
    expect(gm.addSubmodule('a.b.c', new nn.ReLU())).toBe(true)
    expect(gm.attribute('a.b.c')).toBeInstanceOf(nn.ReLU)
    expect(gm.deleteSubmodule('a.b')).toBe(true)
    expect(gm.deleteSubmodule('zzz')).toBe(false)
    gm.deleteAllUnusedSubmodules()
    expect([...gm.namedChildren()].map(([name]) => name)).toEqual(['0', '1'])
  })
})
