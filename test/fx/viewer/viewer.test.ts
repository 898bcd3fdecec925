// Graphs for viewers: the data, what changed between two graphs, Mermaid flowcharts and pages.
import { describe, expect, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, symbolicTrace } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import { ShapeProp } from 'tensorfx/fx/passes'
import { graphPage } from '../../../src/fx/viewer/page.ts'
import { graphView } from '../../../src/fx/viewer/graphView.ts'
import type { ViewNode } from '../../../src/fx/viewer/view.ts'
import { Arranger, openAtFirst } from '../../../src/fx/viewer/layout/arrange.ts'
import { PAGE_SCRIPT } from '../../../src/fx/viewer/generated/page.ts'
import { Layouts } from '../../../src/fx/viewer/layout/layered.ts'
import { mermaid } from '../../../src/fx/viewer/mermaid.ts'
import { pack, unpack } from '../../../src/fx/viewer/pageData.ts'
import type { PackedPage } from '../../../src/fx/viewer/pageData.ts'
import { renderSvg } from '../../../src/fx/viewer/svg.ts'

class Block extends nn.Module {
  readonly fc = new nn.Linear(2, 2)
  readonly scale = new nn.Parameter(torch.ones([2]))
  override forward(x: Tensor): Tensor {
    return torch.relu(this.fc.call(x)).mul(this.scale)
  }
}
class Net extends nn.Module {
  readonly block = new Block()
  override forward(x: Tensor): Tensor {
    return torch.sum(this.block.call(this.block.call(x)), { dim: 1, keepdim: true })
  }
}
const byName = (nodes: readonly ViewNode[]): ReadonlyMap<string, ViewNode> => new Map(nodes.map((node) => [node.name, node]))
const find = (gm: GraphModule, name: string): Node => {
  const node = [...gm.graph.nodes].find((n) => n.name === name)
  if (node === undefined) throw new Error(`no node ${name}`)
  return node
}

describe('graphView', () => {
  test('has a node’s operation, arguments, users, value and place', () => {
    const gm = symbolicTrace(new Net())
    torch.noGrad(() => new ShapeProp(gm).propagate(torch.ones([3, 2])))
    const view = graphView(gm, 'net')
    expect([view.name, view.isDiff, view.nodes.map((n) => n.name)]).toEqual(['net', false, [...gm.graph.nodes].map((n) => n.name)])
    const nodes = byName(view.nodes)
    expect(nodes.get('x')).toMatchObject({
      op: 'placeholder',
      target: 'x',
      spec: 'f32[3, 2]',
      args: [],
      inputs: [],
      users: ['block_fc'],
      modules: [],
    })
    expect(nodes.get('block_fc')).toMatchObject({
      op: 'call_module',
      target: 'block.fc',
      args: ['%x'],
      kwargs: {},
      inputs: ['x'],
      users: ['relu'],
      // The layer itself is the node.
      modules: [{ path: 'block', className: 'Block' }],
    })
    expect(nodes.get('block_fc_1')?.modules).toEqual([{ path: 'block@1', className: 'Block' }])
    expect(nodes.get('sum_1')).toMatchObject({
      op: 'call_function',
      target: 'torch.sum',
      kwargs: { dim: '1', keepdim: 'True' },
      modules: [],
      change: 'same',
      was: null,
    })
    expect(nodes.get('relu')?.origin).toMatchObject({ line: 23, code: 'return torch.relu(this.fc.call(x)).mul(this.scale)' })
    expect(nodes.get('relu')?.origin?.file).toMatch(/viewer\.test\.ts$/)
    expect(nodes.get('relu')?.origin?.fn).toMatch(/forward$/)
    expect(nodes.get('relu')?.stack).toMatch(/^ {2}File ".*viewer\.test\.ts", line \d+, in /)
  })

  test('a node without value, place or module has none', () => {
    const gm = symbolicTrace((x: Tensor) => x.neg())
    for (const node of gm.graph.nodes) node.meta = {}
    expect(graphView(gm, 'g').nodes[1]).toEqual({
      name: 'neg',
      op: 'call_method',
      target: 'neg',
      type: null,
      config: {},
      tensors: [],
      spec: null,
      args: ['%x'],
      kwargs: {},
      inputs: ['x'],
      users: ['output'],
      modules: [],
      origin: null,
      stack: null,
      change: 'same',
      was: null,
    })
    find(gm, 'neg').meta['nn_module_stack'] = new Map<string, unknown>([
      ['', ['', 'Root']],
      ['a', ['a', class Inner {}]],
      ['a.b', 'odd'],
    ])
    expect(graphView(gm, 'g').nodes[1]?.modules).toEqual([
      { path: 'a', className: 'Inner' },
      { path: 'a.b', className: '' },
    ])
  })

  test('has the generated code, with the node of each line', () => {
    const gm = symbolicTrace((x: Tensor) => x.neg().exp())
    const { code } = graphView(gm, 'g')
    expect(code.map(({ text }) => text).join('\n')).toBe(gm.code)
    expect(code.filter(({ node }) => node !== null).map(({ node, text }) => [node, text.includes(`${String(node)}(`)])).toEqual([
      ['neg', true],
      ['exp', true],
      ['output', false],
    ])
    expect(code.every(({ change }) => change === 'same')).toBe(true)
  })
})

describe('the difference of two graphs', () => {
  const edited = (): { before: GraphModule; after: GraphModule } => {
    const program = (x: Tensor): Tensor => x.neg().exp().add(1).sin()
    const [before, after] = [symbolicTrace(program), symbolicTrace(program)]
    const [exp, add] = [find(after, 'exp'), find(after, 'add')]
    const cos = after.graph.insertingBefore(exp, () => after.graph.callMethod('cos', [find(after, 'neg')]))
    exp.replaceAllUsesWith(cos)
    after.graph.eraseNode(exp)
    add.updateArg(1, 2)
    after.recompile()
    return { before, after }
  }

  test('nodes are added, removed, changed or the same, and removed ones are where they were', () => {
    const { before, after } = edited()
    const view = graphView(after, 'diff', before)
    expect(view.isDiff).toBe(true)
    expect(view.nodes.map((n) => [n.name, n.change])).toEqual([
      ['x', 'same'],
      ['neg', 'same'],
      ['exp', 'removed'],
      ['cos', 'added'],
      ['add', 'changed'],
      ['sin', 'same'],
      ['output', 'same'],
    ])
    expect(view.nodes.map((n) => n.was)).toEqual([null, null, null, null, 'call_method[add](%exp, 1)', null, null])
  })

  test('lines of code too', () => {
    const { before, after } = edited()
    const lines = graphView(after, 'diff', before).code.filter(({ node }) => node !== null)
    expect(lines.map(({ node, change }) => [node, change])).toEqual([
      ['neg', 'same'],
      ['exp', 'removed'],
      ['cos', 'added'],
      ['add', 'changed'],
      ['sin', 'same'],
      ['output', 'same'],
    ])
    expect(lines[1]?.text).toContain('.exp()')
  })

  test('an equal graph has no changes, also if a value has other users', () => {
    const [before, after] = [symbolicTrace((x: Tensor) => x.neg().exp()), symbolicTrace((x: Tensor) => x.neg().exp())]
    expect(graphView(after, 'g', before).nodes.every((n) => n.change === 'same')).toBe(true)
    after.graph.insertingBefore(after.graph.outputNode(), () => after.graph.callMethod('cos', [find(after, 'neg')]))
    expect(graphView(after, 'g', before).nodes.map((n) => n.change)).toEqual(['same', 'same', 'same', 'added', 'same'])
  })

  test('what was removed at the start stays at the start, several in their order', () => {
    const before = symbolicTrace((a: Tensor, b: Tensor, c: Tensor) => [b.neg(), a, c])
    const after = symbolicTrace((c: Tensor) => c)
    expect(graphView(after, 'g', before).nodes.map((n) => [n.name, n.change])).toEqual([
      ['a', 'removed'],
      ['b', 'removed'],
      ['c', 'same'],
      ['neg', 'removed'],
      ['output', 'changed'],
    ])
  })

  test('a node that reads another value because its own was removed is the same, whatever took its place', () => {
    const view = (then: (x: Tensor) => Tensor, now: (x: Tensor) => Tensor): string[] =>
      graphView(symbolicTrace(now), 'g', symbolicTrace(then))
        .nodes.filter((n) => n.change !== 'same')
        .map((n) => `${n.name} ${n.change}`)
    expect(
      view(
        (x) => x.exp().sin(),
        (x) => x.cos().sin(),
      ),
    ).toEqual(['exp removed', 'cos added'])
    expect(
      view(
        (x) => x.exp().sin(),
        (x) => x.sin(),
      ),
    ).toEqual(['exp removed'])
    expect(
      view(
        (x) => x.exp().add(x),
        (x) => x.cos().add(x),
      ),
    ).toEqual(['exp removed', 'cos added'])
    // Another argument of the same node, and another value though the one before is still there, are changes.
    expect(
      view(
        (x) => x.exp().add(1),
        (x) => x.cos().add(2),
      ),
    ).toEqual(['exp removed', 'cos added', 'add changed'])
    expect(
      view(
        (x) => x.exp().neg().sub(x),
        (x) => {
          const y = x.exp()
          return y.neg().sub(y)
        },
      ),
    ).toEqual(['sub changed'])
  })

  test('a layer with another configuration, or with tensors of other shapes or dtypes, is changed; one with other values is not', () => {
    const net = (bias: boolean, padding: number): GraphModule => symbolicTrace(new nn.Sequential(new nn.Conv2d(1, 2, 3, { bias, padding })))
    const changed = (now: GraphModule, then: GraphModule): (string | null)[] => graphView(now, 'g', then).nodes.map((n) => n.was)
    expect(changed(net(true, 1), net(true, 1))).toEqual([null, null, null])
    expect(changed(net(true, 1), net(false, 1))[1]).toMatch(/^call_module\[0\]\(%\w+\)\nConv2d\(/)
    expect(changed(net(true, 1), net(true, 0))[1]).toContain('padding: [0, 0]')
  })

  test('options count as arguments', () => {
    const [before, after] = [symbolicTrace((x: Tensor) => torch.sum(x, { dim: 0 })), symbolicTrace((x: Tensor) => torch.sum(x, { dim: 1 }))]
    expect(graphView(after, 'g', before).nodes.map((n) => n.was)).toEqual([null, 'call_function[torch.sum](%x, dim: 0)', null])
  })
})

describe('mermaid', () => {
  test('draws nodes by their kind, modules as boxes, and edges', () => {
    const gm = symbolicTrace(new Net())
    expect(mermaid(gm).split('\n')).toEqual([
      'flowchart TB',
      '  n0(["%x"])',
      '  subgraph m0["block Block"]',
      '    n1[["%block_fc<br/>block.fc"]]',
      '    n2["%relu<br/>torch.relu"]',
      '    n3[("%block_scale<br/>block.scale")]',
      '    n4["%mul<br/>mul"]',
      '  end',
      '  subgraph m1["block@1 Block"]',
      '    n5[["%block_fc_1<br/>block.fc"]]',
      '    n6["%relu_1<br/>torch.relu"]',
      // The parameter is read once.
      '    n7["%mul_1<br/>mul"]',
      '  end',
      '  n8["%sum_1<br/>torch.sum"]',
      '  n9(["%output"])',
      ...[...gm.graph.nodes].flatMap((node, i, all) => node.allInputNodes.map((input) => `  n${all.indexOf(input)} --> n${i}`)),
    ])
  })

  test('without boxes, and from left to right', () => {
    const lines = mermaid(symbolicTrace(new Net()), { direction: 'LR', modules: false }).split('\n')
    expect(lines.slice(0, 3)).toEqual(['flowchart LR', '  n0(["%x"])', '  n1[["%block_fc<br/>block.fc"]]'])
    expect(lines.some((line) => /subgraph|end$/.test(line))).toBe(false)
  })

  test('nested modules are nested boxes, which end with the module', () => {
    class Outer extends nn.Module {
      readonly net = new Net()
      override forward(x: Tensor): Tensor {
        return this.net.call(x).neg()
      }
    }
    const lines = mermaid(symbolicTrace(new Outer())).split('\n')
    expect(lines.slice(1, 5)).toEqual([
      '  n0(["%x"])',
      '  subgraph m0["net Net"]',
      '    subgraph m1["net.block Block"]',
      '      n1[["%net_block_fc<br/>net.block.fc"]]',
    ])
    expect(lines.filter((line) => line.trim() === 'end')).toEqual(['    end', '    end', '  end'])
  })

  test('values are shown, and what Mermaid would read as markup is escaped', () => {
    const gm = symbolicTrace((x: Tensor) => x.neg())
    find(gm, 'neg').meta['val'] = { shape: [2], dtype: 'a<b>&"c"' }
    expect(mermaid(gm).split('\n')[2]).toBe('  n1["%neg<br/>neg<br/>a#lt;b#gt;#amp;#quot;c#quot;[2]"]')
  })
})

describe('graphPage', () => {
  const dataOf = (page: string): PackedPage => JSON.parse(/<script id="data" type="application\/json">(.*)<\/script>/.exec(page)?.[1] ?? 'null')

  test('holds the data of the graph, the categories that it has, and how many nodes', () => {
    const gm = symbolicTrace(new Net())
    const page = graphPage(gm)
    expect(dataOf(page).graph).toEqual(JSON.parse(JSON.stringify(pack(graphView(gm, 'Net')))))
    expect(page).toMatch(/^<!doctype html>\n<html lang="en">/)
    expect([page.includes('<title>Net</title>'), page.includes('<h1 title="Net">Net</h1>')]).toEqual([true, true])
    expect(page).toContain(`<span class="count">${gm.graph.size} nodes</span>`)
    const categories = [...page.matchAll(/<i style="background:var\(--category-(\w+)\)"><\/i>(\w+)<\/span>/g)].map(([, variable, name]) => [
      variable,
      name,
    ])
    expect(categories).toEqual(['input', 'layer', 'activation', 'parameter', 'math'].map((name) => [name, name]))
    // Each colour is there for light and for dark.
    for (const [name] of categories) expect(page.split(`--category-${name}:`).length).toBe(3)
  })

  test('has everything in it: no address, and no script or style from elsewhere', () => {
    const page = graphPage(symbolicTrace(new Net()))
    expect(page).not.toMatch(/<(?:script|link|img|iframe)[^>]+(?:src|href)=|@import|url\(\s*['"]?https?:/)
    // The program can write a page itself.
    expect(page.replace(PAGE_SCRIPT, '').match(/<script/g)?.length).toBe(2)
  })

  test('brings the layouts along: the page computes none for what is seen at first, for all modules open and for none', () => {
    const gm = symbolicTrace(new Net())
    const { graph, layouts } = dataOf(graphPage(gm))
    const known = new Layouts(layouts)
    const arranger = new Arranger(unpack(graph), known)
    for (const open of [openAtFirst(arranger.tree), new Set(arranger.tree.groups), new Set<never>()]) arranger.arrange(open)
    expect([known.computed, arranger.tree.groups.length]).toEqual([0, 2])
  })

  test('shows the difference to an earlier graph', () => {
    const before = symbolicTrace((x: Tensor) => x.neg().exp().sin())
    const after = symbolicTrace((x: Tensor) => x.neg().cos())
    const page = graphPage(after, { title: 'since', before })
    expect(page).toContain(
      '<span class="count"><span class="added">1 added</span> <span class="removed">2 removed</span> <span class="changed">0 changed</span></span>',
    )
    expect([dataOf(page).graph.isDiff, page.includes('<title>since</title>')]).toEqual([true, true])
  })

  test('values are read only for statistics', () => {
    const gm = symbolicTrace(new Net())
    const statistics = (page: string): number =>
      unpack(dataOf(page).graph).nodes.flatMap((node) => node.tensors.filter((t) => t.statistics !== null)).length
    expect([statistics(graphPage(gm)), statistics(graphPage(gm, { statistics: false }))]).toEqual([5, 0])
  })

  test('titles and data cannot end the page’s elements', () => {
    const gm = symbolicTrace((x: Tensor) => x.neg())
    find(gm, 'neg').type = '</script><b>'
    const page = graphPage(gm, { title: '<a href="x">&' })
    expect(page).toContain('>&lt;a href=&quot;x&quot;&gt;&amp;</h1>')
    expect(page).not.toContain('</script><b>')
    const graph = unpack(dataOf(page).graph)
    expect([graph.name, graph.nodes[1]?.spec]).toEqual(['<a href="x">&', '</script><b>'])
  })
})

test('renderSvg gives the svg element alone', async () => {
  const svg = await renderSvg('digraph { a -> b }')
  expect(svg).toMatch(/^<svg[\s>]/)
  expect(svg.trimEnd()).toMatch(/<\/svg>$/)
  expect(await renderSvg('digraph { a -> b }', 'circo')).not.toBe(svg)
})
