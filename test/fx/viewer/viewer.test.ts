// Graphs for viewers: the data, what changed between two graphs, Mermaid flowcharts and pages.
import { describe, expect, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, symbolicTrace } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import { ShapeProp } from 'tensorfx/fx/passes'
import { graphPage } from '../../../src/fx/viewer/page.ts'
import { graphView } from '../../../src/fx/viewer/graphView.ts'
import type { ViewNode } from '../../../src/fx/viewer/graphView.ts'
import { mermaid } from '../../../src/fx/viewer/mermaid.ts'
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
    expect(nodes.get('relu')?.origin).toMatchObject({ line: 18, code: 'return torch.relu(this.fc.call(x)).mul(this.scale)' })
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
  const dataOf = (page: string): unknown => JSON.parse(/<script id="data" type="application\/json">(.*)<\/script>/.exec(page)?.[1] ?? 'null')

  test('holds the data of the graph, the kinds that it has, and how many nodes', () => {
    const gm = symbolicTrace(new Net())
    const page = graphPage(gm)
    expect(dataOf(page)).toEqual(JSON.parse(JSON.stringify(graphView(gm, 'Net'))))
    expect(page).toMatch(/^<!doctype html>\n<html lang="en">/)
    expect([page.includes('<title>Net</title>'), page.includes('<h1>Net</h1>')]).toEqual([true, true])
    expect(page).toContain(`<span class="count">${gm.graph.size} nodes</span>`)
    const kinds = [...page.matchAll(/<i style="background:var\(--(\w+)\)"><\/i>(\w+)<\/span>/g)].map(([, variable, kind]) => [variable, kind])
    expect(kinds).toEqual(['placeholder', 'get_attr', 'call_module', 'call_function', 'call_method', 'output'].map((kind) => [kind, kind]))
    const small = graphPage(symbolicTrace((x: Tensor) => x))
    expect([small.includes('--placeholder)'), small.includes('</i>call_module')]).toEqual([true, false])
    expect([page.includes('<section id="code" hidden>'), /<style>[^<]+<\/style>/.test(page), /<script>\n'use strict';/.test(page)]).toEqual([
      true,
      true,
      true,
    ])
  })

  test('shows the difference to an earlier graph', () => {
    const before = symbolicTrace((x: Tensor) => x.neg().exp().sin())
    const after = symbolicTrace((x: Tensor) => x.neg().cos())
    const page = graphPage(after, { title: 'since', before })
    expect(page).toContain(
      '<span class="count"><span class="added">1 added</span> <span class="removed">2 removed</span> <span class="changed">1 changed</span></span>',
    )
    expect([page.includes('<section id="code" class="diff" hidden>'), page.includes('<title>since</title>')]).toEqual([true, true])
  })

  test('titles and data cannot end the page’s elements', () => {
    const gm = symbolicTrace((x: Tensor) => x.neg())
    find(gm, 'neg').type = '</script><b>'
    const page = graphPage(gm, { title: '<a href="x">&' })
    expect(page).toContain('<h1>&lt;a href=&quot;x&quot;&gt;&amp;</h1>')
    expect(page).not.toContain('</script><b>')
    expect(dataOf(page)).toMatchObject({ name: '<a href="x">&', nodes: [{}, { spec: '</script><b>' }, {}] })
  })
})

test('renderSvg gives the svg element alone', async () => {
  const svg = await renderSvg('digraph { a -> b }')
  expect(svg).toMatch(/^<svg[\s>]/)
  expect(svg.trimEnd()).toMatch(/<\/svg>$/)
  expect(await renderSvg('digraph { a -> b }', 'circo')).not.toBe(svg)
})
