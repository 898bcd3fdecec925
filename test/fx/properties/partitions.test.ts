// CapabilityBasedPartitioner finds the groups that PyTorch's rule gives: join every node, from the last to the first, with each group that makes no circle, the oldest first.
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { torch } from 'tensorfx'
import { Graph, GraphModule } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import { CapabilityBasedPartitioner, createOpSupport, fuseByPartitions, validatePartition } from 'tensorfx/fx/passes'
import { numRuns } from './programs.ts'

const steps = fc.array(fc.record({ kind: fc.nat(2), a: fc.nat(100), b: fc.nat(100), supported: fc.boolean(), returned: fc.boolean() }), {
  minLength: 15,
  maxLength: 30,
})
type Steps = typeof steps extends fc.Arbitrary<infer T> ? T : never

/** Calls that read one of the last three values, and which of them are supported. */
function graphOf(list: Steps): { readonly gm: GraphModule; readonly supported: ReadonlySet<Node> } {
  const graph = new Graph()
  const values = [graph.placeholder('x'), graph.placeholder('y')]
  const supported = new Set<Node>()
  const returned: Node[] = []
  for (const step of list) {
    const pick = (n: number): Node | undefined => values.at(-1 - (n % Math.min(values.length, 3)))
    const make = [
      () => graph.callFunction(torch.relu, [pick(step.a)]),
      () => graph.callFunction(torch.add, [pick(step.a), pick(step.b)]),
      () => graph.callFunction(torch.reshape, [pick(step.a), [-1]]),
    ]
    const node = make[step.kind]?.() ?? graph.getAttr('missing')
    values.push(node)
    if (step.supported) supported.add(node)
    if (step.returned) returned.push(node)
  }
  graph.output(returned)
  return { gm: new GraphModule({}, graph), supported }
}

interface Group {
  readonly id: number
  readonly nodes: readonly Node[]
}

/** Whether a value of some nodes comes back to them, through other nodes and groups. */
function comesBack(inside: readonly Node[], groups: readonly Group[]): boolean {
  const unit = (node: Node): readonly Node[] => groups.find((group) => group.nodes.includes(node))?.nodes ?? [node]
  const reached = new Set(inside.flatMap((node) => [...node.users]).filter((user) => !inside.includes(user)))
  for (const node of reached) for (const user of unit(node).flatMap((each) => [...each.users])) if (!unit(node).includes(user)) reached.add(user)
  return inside.some((node) => reached.has(node))
}

/** The rule as it is written in PyTorch: a search for a circle before each merge. */
function byTheRule(gm: GraphModule, supported: ReadonlySet<Node>): Group[] {
  // The oldest first; a merged group has the age of the older one, and the number of the larger one.
  let groups: Group[] = []
  let id = 0
  for (const node of [...gm.graph.nodes].toReversed()) {
    if (!supported.has(node)) continue
    let group: Group = { id: id++, nodes: [node] }
    for (const other of groups) {
      const rest = groups.filter((each) => each !== group && each !== other)
      if (comesBack([...group.nodes, ...other.nodes], rest)) continue
      const [into, from] = group.nodes.length < other.nodes.length ? [other, group] : [group, other]
      const merged = { id: into.id, nodes: [...into.nodes, ...from.nodes] }
      const oldest = groups.find((each) => each === group || each === other)
      groups = groups.filter((each) => each === oldest || (each !== group && each !== other)).map((each) => (each === oldest ? merged : each))
      group = merged
    }
    if (!groups.includes(group)) groups.push(group)
  }
  return groups.toSorted((a, b) => a.id - b.id)
}

const show = (groups: Iterable<{ readonly id: number; readonly nodes: Iterable<Node> }>): [number, string[]][] =>
  [...groups].map(({ id, nodes }) => [id, [...nodes].map(String)])

it('random graphs get the groups that a search for circles before each merge gives, in the same order', () => {
  let several = 0
  fc.assert(
    fc.property(steps, (list) => {
      const { gm, supported } = graphOf(list)
      const support = createOpSupport((_, node) => supported.has(node))
      const found = new CapabilityBasedPartitioner(gm, support, { allowsSingleNodePartition: true }).proposePartitions()
      expect(show(found)).toEqual(show(byTheRule(gm, supported)))
      for (const { nodes } of found) expect(validatePartition(nodes)).toBe(true)
      if (found.length > 1) several++
    }),
    { numRuns: 4 * numRuns },
  )
  expect(several).toBeGreaterThan(0)
})

it('views at the ends of random groups go, and only those: what is left begins and ends with nodes that compute', () => {
  let removed = 0
  fc.assert(
    fc.property(steps, (list) => {
      const { gm, supported } = graphOf(list)
      const support = createOpSupport((_, node) => supported.has(node))
      const partitioner = new CapabilityBasedPartitioner(gm, support, { allowsSingleNodePartition: true, nonComputeOps: ['torch.reshape'] })
      const partitions = partitioner.proposePartitions()
      const cut = partitioner.removeBookendNonComputeOps(partitions)
      for (const [i, { nodes }] of partitions.entries()) {
        const kept = new Set(cut[i]?.nodes)
        const reaches = (node: Node, next: (n: Node) => Iterable<Node>): boolean =>
          [...next(node)].some((n) => nodes.has(n) && (n.target !== torch.reshape || reaches(n, next)))
        for (const node of nodes) {
          const between = reaches(node, (n) => n.allInputNodes) && reaches(node, (n) => n.users)
          expect([String(node), kept.has(node)]).toEqual([String(node), node.target !== torch.reshape || between])
          if (!kept.has(node)) removed++
        }
      }
    }),
    { numRuns: 4 * numRuns },
  )
  expect(removed).toBeGreaterThan(0)
})

it('fusing many groups tells the module of every input that is replaced, keeps the meta of values, and replaces them under keywords', () => {
  const graph = new Graph()
  const a = graph.callFunction(torch.relu, [graph.placeholder('x')])
  const b = graph.callFunction(torch.neg, [a])
  graph.output(graph.callFunction(torch.add, [graph.callFunction(torch.sub, [b, a])], { other: b }))
  const gm = new GraphModule({}, graph)
  const node = (name: string): Node => [...graph.nodes].find((each) => each.name === name) ?? graph.outputNode()
  node('relu').meta['tag'] = 'of relu'
  const replaced: string[] = []
  gm.registerReplaceNodeHook((old, name, user) => replaced.push(`${old} ${name} ${user}`))
  fuseByPartitions(gm, [[node('relu')], [node('neg')], [node('sub')]])
  expect(replaced.toSorted()).toEqual(['neg fused_1 add', 'neg fused_1 sub', 'relu fused_0 neg', 'relu fused_0 sub', 'sub fused_2 add'])
  expect(node('add').allInputNodes.map(String)).toEqual(['fused_2', 'fused_1'])
  expect(['fused_0', 'fused_1', 'fused_2'].map((name) => [name, node(name).meta['tag']])).toEqual([
    ['fused_0', 'of relu'],
    ['fused_1', undefined],
    ['fused_2', undefined],
  ])
  const x = torch.tensor([1, 2])
  expect(gm.call(x).toArray()).toEqual([-3, -6])
})
