// What graphs, nodes and modules print.
import { inspect } from 'node:util'
import { describe, expect, it, vi } from 'vitest'
import { nn, operator, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { builtInOps } from '../ops/builtInOps.ts'
import { Graph, GraphModule, Slice, symbolicTrace } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'

class Model extends nn.Module {
  readonly param = new nn.Parameter(torch.rand([3, 4]))
  readonly linear = new nn.Linear(4, 5)
  override forward(x: Tensor[], y = 2): Tensor {
    return this.linear.call((operator.getitem(x, y) as Tensor).add(this.param)).clamp({ min: 0, max: 1 })
  }
}

describe('printing', () => {
  it('test_pretty_print_node: a line for each kind of node, with defaults and types', () => {
    const gm = symbolicTrace((x: Tensor, y = 2) => torch.clamp(x.add(y), { min: 0 }))
    const [first] = gm.graph.findNodes({ op: 'placeholder' })
    if (first !== undefined) first.type = 'torch.Tensor'
    expect([...gm.graph.nodes].map((n) => n.formatNode())).toEqual([
      '%x : torch.Tensor [num_users=1] = placeholder[target=x]',
      '%y : [num_users=1] = placeholder[target=y](default=2)',
      '%add : [num_users=1] = call_method[target=add](args = (%x, %y), kwargs = {})',
      '%clamp : [num_users=1] = call_function[target=torch.clamp](args = (%add,), kwargs = {min: 0})',
      'return clamp',
    ])
    const module = new GraphModule(new Model(), new Graph())
    const { graph } = module
    const input = graph.placeholder('*args')
    const item = graph.createNode('get_attr', 'linear.weight')
    graph.output([graph.createNode('call_module', 'linear', [input]), item], 'List[torch.Tensor]')
    expect([...graph.nodes].map((n) => n.formatNode())).toEqual([
      '%_args : [num_users=1] = placeholder[target=*args]',
      '%linear_weight : [num_users=1] = get_attr[target=linear.weight]',
      '%linear : [num_users=1] = call_module[target=linear](args = (%_args,), kwargs = {})',
      'return [linear, linear_weight]',
    ])
  })

  it('test_pretty_print_graph: one line for each node under a header; options, slices and types', () => {
    const gm = symbolicTrace((x: Tensor) => torch.squeeze(x.add(3), 2))
    const squeeze = gm.graph.findNodes({ op: 'call_function', target: torch.squeeze })[0]
    gm.graph.insertingBefore(gm.graph.outputNode(), () =>
      gm.graph.callMethod('getitem', [squeeze ?? null, [new Slice(null, null, null), new Slice(null, null, 2)]], {}, 'torch.Tensor'),
    )
    expect(String(gm.graph)).toBe(`graph():
    %x : [num_users=1] = placeholder[target=x]
    %add : [num_users=1] = call_method[target=add](args = (%x, 3), kwargs = {})
    %squeeze : [num_users=2] = call_function[target=torch.squeeze](args = (%add, 2), kwargs = {})
    %getitem : torch.Tensor [num_users=0] = call_method[target=getitem](args = (%squeeze, [slice(None, None, None), slice(None, None, 2)]), kwargs = {})
    return squeeze`)
  })

  it('test_pretty_print: a GraphModule prints its layers, its code, and how to see more', () => {
    const gm = symbolicTrace(new Model())
    expect(String(gm)).toBe(`Model(
  (linear): Linear(in_features=4, out_features=5, bias=True)
)

function forward(x, y = 2) {
  let getitem = operator.getitem(x, y); x = y = null
  const param = this.param
  let add = getitem.add(param); getitem = null
  let linear = this.linear.call(add); add = null
  const clamp = linear.clamp({ min: 0, max: 1 }); linear = null
  return clamp
}

// To see more debug info, please use \`graphModule.printReadable()\``)
  })

  it('printReadable and printTabular print, unless told not to, and give the text', () => {
    const log = vi.spyOn(console, 'log').mockImplementation(() => {})
    const gm = symbolicTrace(new Model())
    const text = gm.printReadable()
    expect(log.mock.calls.splice(0)).toEqual([[text]])
    const table = gm.graph.printTabular({ extra: [['users', (n) => String(n.users.size)]] })
    expect(log.mock.calls.splice(0)).toEqual([[table]])
    expect(gm.graph.printTabular({ print: false }) + gm.printReadable({ print: false })).not.toBe('')
    expect(log).not.toHaveBeenCalled()
    log.mockRestore()
    expect(table.split('\n')[0]?.split(/ {2,}/)).toEqual(['opcode', 'name', 'target', 'args', 'kwargs', 'users'])
  })

  it('console.log shows nodes, graphs and modules as their text', () => {
    const gm = symbolicTrace((first: Tensor) => torch.relu(first).neg())
    const relu = gm.graph.findNodes({ op: 'call_function', target: torch.relu })[0] as Node
    expect([inspect(relu), inspect([relu.args, { k: relu }])]).toEqual(['relu', '[ [ first ], { k: relu } ]'])
    expect([inspect(gm.graph), inspect(gm), inspect(new nn.ReLU())]).toEqual([String(gm.graph), String(gm), 'ReLU()'])
    expect([inspect(gm.graph.nodes), inspect(relu.users)]).toEqual(['[first, relu, neg, output]', '{neg}'])
  })

  it('test_torch_op_overloads: every operator of the table stands in a graph under its own name, prints it, and is called by the code', () => {
    for (const { fn, qualname } of builtInOps()) {
      const graph = new Graph()
      const x = graph.placeholder('x')
      const node = graph.callFunction(fn, [x])
      graph.output(node)
      expect(node.formatNode()).toContain(`call_function[target=${qualname}]`)
      const code = new GraphModule({}, graph).recompile()
      const call = /= (\S+)\(x\)/.exec(code.source)?.[1] as string
      const path = call.split('.')
      const found = path.slice(1).reduce((value: unknown, part) => (value as Record<string, unknown>)[part], code.globals.get(path[0] as string))
      expect([qualname, found === fn]).toEqual([qualname, true])
    }
  })
})
