// findNodes looks in a table that is made when somebody first asks; after that every edit keeps it up to date.
import { expect, test } from 'vitest'
import { torch } from 'tensorfx'
import { Graph } from 'tensorfx/fx'

function chain(): Graph {
  const graph = new Graph()
  const x = graph.placeholder('x')
  graph.output(graph.callFunction(torch.relu, [graph.callFunction(torch.add, [x, 1])]))
  return graph
}

for (const asked of [false, true]) {
  test(`edits ${asked ? 'after' : 'before'} the first search are seen`, () => {
    const graph = chain()
    const names = (target: typeof torch.relu | typeof torch.add): string[] => graph.findNodes({ op: 'call_function', target }).map((n) => n.name)
    if (asked) expect(names(torch.relu)).toEqual(['relu'])
    const relu = [...graph.nodes].find((n) => n.name === 'relu')
    if (relu === undefined) throw new Error('no relu')
    graph.insertingBefore(relu, () => graph.callFunction(torch.relu, [relu.args[0]]))
    relu.target = torch.add
    expect(names(torch.relu)).toEqual(['relu_1'])
    expect(names(torch.add)).toEqual(['add', 'relu'])
    graph.lint()
  })

  test(`a node erased ${asked ? 'after' : 'before'} the first search is gone, and comes back when it is put back`, () => {
    const graph = chain()
    const find = (): string[] => graph.findNodes({ op: 'call_function', target: torch.sigmoid }).map((n) => n.name)
    const extra = graph.insertingBefore(graph.outputNode(), () => graph.callFunction(torch.sigmoid, [[...graph.nodes][0]]))
    if (asked) expect(find()).toEqual(['sigmoid'])
    graph.eraseNode(extra)
    expect(find()).toEqual([])
    expect(graph.nodes.length).toBe(4)
    graph.outputNode().prepend(extra)
    expect(find()).toEqual(['sigmoid'])
    expect(graph.nodes.length).toBe(5)
    graph.lint()
  })
}
