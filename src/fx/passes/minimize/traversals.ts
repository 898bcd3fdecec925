// The ways in which a minimizer goes through the nodes. Each runs parts of the graph on both backends and returns the nodes that make them differ. What a part is and how it
// runs is the business of net_min_base.
import { ArgumentError } from '../../../errors/index.ts'
import type { Node } from '../../graph/node.ts'
import type { MinimizerSettingBase } from './settings.ts'

/** What comparing a part gave: equal results, different ones, or a backend failed. */
export type Outcome = 'equal' | 'mismatch' | 'run error'

/** What the traversals need of a minimizer. */
export interface Trials {
  readonly settings: MinimizerSettingBase
  /** The nodes that run together with a node. */
  readonly fusions: ReadonlyMap<Node, ReadonlySet<Node>>
  /** Lets the user remove nodes from a list; null if there is no such function. */
  readonly exclusionFn: ((nodes: Node[], start: number, end: number) => void) | null
  /** Starts the report of the next part. Returns it, and the number of parts so far. */
  newReport(): [report: string[], iteration: number]
  /** Adds a report that is not about one part. */
  addReport(report: string[]): void
  /** Runs some nodes on both backends and compares the nodes named `outputs`, or all results of the part if there are none. */
  attempt(nodes: Iterable<Node>, outputs: readonly string[], report: string[]): Outcome
  printReport(report: readonly string[]): void
  print(line: string): void
}

/** A set as reports print it. */
const setText = (nodes: Iterable<Node>): string => `{${Array.from(nodes, (node) => node.name).join(', ')}}`

/** Node by node. A node in a fusion group runs with its group. */
export function traverseSequential(trials: Trials, nodes: readonly Node[]): Set<Node> {
  const culprits = new Set<Node>()
  const { findAll } = trials.settings
  for (const node of nodes) {
    const [report, iteration] = trials.newReport()
    report.push(`Sequential traverse iteration ${iteration}.`, `Visit node: ${node.name}`)
    const group = trials.fusions.get(node) ?? new Set([node])
    if (isExcluded(trials, [...group])) {
      report.push(`User exclusion : ${node.name}`)
      trials.printReport(report)
      if (findAll) continue
      return culprits
    }
    const outcome = trials.attempt(group, [node.name], report)
    if (outcome === 'mismatch') culprits.add(node)
    if (outcome === 'run error') for (const member of group) culprits.add(member)
    if (outcome !== 'equal') report.push(`Found culprit from ${outcome === 'mismatch' ? 'numeric' : 'run'} error: ${node.name}`)
    trials.printReport(report)
    if (outcome !== 'equal' && !findAll) return culprits
  }
  return culprits
}

function isExcluded({ exclusionFn }: Trials, nodes: Node[]): boolean {
  exclusionFn?.(nodes, -1, -1)
  return nodes.length === 0
}

/** Halves the range: a range that fails is divided, and its right half is only tried if the left one is fine, or to find all culprits. */
export function traverseBinary(trials: Trials, all: readonly Node[], start: number = 0, end: number = all.length): Set<Node> {
  const nodes = all.slice(start, end)
  trials.exclusionFn?.(nodes, start, end)
  const [first, last] = [nodes[0], nodes.at(-1)]
  if (first === undefined || last === undefined) {
    trials.addReport(['All nodes are excluded by user'])
    return new Set()
  }
  const [report, iteration] = trials.newReport()
  report.push(
    `Binary search iteration ${iteration}`,
    `From node index ${start}:${first.name} to ${end - 1}:${last.name}. Size of the interested node list is ${nodes.length}`,
  )
  if (trials.attempt(nodes, [last.name], report) === 'equal') {
    report.push('No discrepancy found.')
    trials.printReport(report)
    return new Set()
  }
  if (nodes.length === 1) {
    report.push(`This is the last node in the sub-module. Search in the current branch is successful with culprit = ${setText(nodes)}.`)
    trials.printReport(report)
    return new Set(nodes)
  }
  report.push('Proceed to split and lower the halves of the current sub-module individually.')
  trials.printReport(report)
  const middle = start + Math.floor((end - start) / 2)
  const left = traverseBinary(trials, all, start, middle)
  if (left.size > 0 && !trials.settings.findAll) return left
  const culprits = new Set([...left, ...traverseBinary(trials, all, middle, end)])
  if (culprits.size === 0) {
    const names = nodes.map((node) => node.name).join(', ')
    report.push(`Further split and lowering found no errors. Unable to minimize the submodule with list of nodes: [${names}]`)
    trials.printReport(report)
  }
  return culprits
}

/** Runs the first node, the first two, and so on; the node that makes it fail is the culprit. */
export function traverseAccumulate(trials: Trials, nodes: readonly Node[]): Set<Node> {
  if (trials.settings.findAll) {
    trials.print("'Find All' mode is not supported in accumulate traversal.")
    return new Set()
  }
  const prefix = new Set<Node>()
  for (const node of nodes) {
    const [report, iteration] = trials.newReport()
    prefix.add(node)
    report.push(`Accumulate traverse iteration ${iteration}.`, `Add node: ${node.name}`)
    const failed = trials.attempt(prefix, [node.name], report) !== 'equal'
    if (failed) report.push(`Found culprit ${node.name}`)
    trials.printReport(report)
    if (failed) return new Set([node])
  }
  return new Set()
}

/** Runs the stretches between the nodes named `skip`, each as a whole. */
export function traverseSkip(trials: Trials, all: readonly Node[], skip: ReadonlySet<string>): Set<Node> {
  const culprits = new Set<Node>()
  let start = 0
  for (let end = 0; end <= all.length; end++) {
    const node = all[end]
    if (node !== undefined && !skip.has(node.name)) continue
    if (end > start) for (const culprit of tryBlock(trials, all, start, end)) culprits.add(culprit)
    start = end + 1
  }
  return culprits
}

function tryBlock(trials: Trials, all: readonly Node[], start: number, end: number): readonly Node[] {
  const nodes = all.slice(start, end)
  if (trials.exclusionFn === null) addFusions(nodes, trials.fusions)
  else trials.exclusionFn(nodes, start, end)
  const [report, iteration] = trials.newReport()
  report.push(` Nodes block ${iteration}.`, `From node index ${start} to ${end - 1}. Size of the interested node list is ${end - start}`)
  const outcome = nodes.length === 0 ? 'equal' : trials.attempt(nodes, [], report)
  report.push(
    outcome === 'equal' ? 'No discrepancy found.' : `Found culprit from ${outcome === 'mismatch' ? 'numeric' : 'run'} error: ${setText(nodes)}`,
  )
  trials.printReport(report)
  return outcome === 'equal' ? [] : nodes
}

/** Adds to a list the nodes that must run with those in it. */
export function addFusions(nodes: Node[], fusions: ReadonlyMap<Node, ReadonlySet<Node>>): void {
  const known = new Set(nodes)
  for (const node of [...nodes])
    for (const member of fusions.get(node) ?? []) {
      if (known.has(member)) continue
      known.add(member)
      nodes.push(member)
    }
}

/** Runs the range as one part. */
export function traverseDefined(trials: Trials, nodes: readonly Node[]): Set<Node> {
  const [first, last] = ends(nodes)
  const report = [`Defined graph from ${first.name} to ${last.name}`]
  const failed = trials.attempt(nodes, [last.name], trials.newReport()[0]) !== 'equal'
  if (failed) report.push(`Found culprit ${setText(nodes)}`)
  trials.printReport(report)
  return new Set(failed ? nodes : [])
}

/** The first and the last node. @throws ArgumentError if there is none. */
function ends(nodes: readonly Node[]): [Node, Node] {
  const [first, last] = [nodes[0], nodes.at(-1)]
  if (first === undefined || last === undefined) throw new ArgumentError('minimize: there is no node between start and end; put start before end.')
  return [first, last]
}

/**
 * Finds the smallest contiguous block that fails. Pass 1 searches the smallest end with which the nodes from the first one on fail, pass 2 the largest start with which
 * the nodes up to the last one do. `findLast` true does only pass 1, false only pass 2, null both.
 */
export function traverseBlock(trials: Trials, nodes: readonly Node[], findLast: boolean | null): Set<Node> {
  const [first, last] = ends(nodes)
  const head = [`Block search from ${first.name} to ${last.name}`, '*'.repeat(50)]
  trials.addReport(head)
  const nameAt = (index: number): string => `${index}:${nodes[index]?.name ?? ''}`
  let [start, end] = [0, nodes.length - 1]
  if (findLast !== false) {
    head.push('Start searching for last node in culprit')
    trials.printReport(head)
    const found = searchBlock(trials, nodes, end, true)
    head.push(...(found === null ? ['No culprits found'] : ['Finish Pass 1', `Find end_idx = ${nameAt(found)}`]))
    trials.printReport(head)
    if (found === null) return new Set()
    end = found
  }
  if (findLast !== true) {
    const report = ['Start searching for first node in culprit']
    trials.printReport(report)
    const found = searchBlock(trials, nodes, end, false)
    trials.addReport(report)
    report.push('*'.repeat(50), ...(found === null ? ['No culprits found'] : ['Finish Pass 2', `Find start_idx = ${nameAt(found)}`]))
    trials.printReport(report)
    if (found === null) return new Set()
    start = found
  }
  const block = nodes.slice(start, end + 1)
  const [from, to] = ends(block)
  const result = [`Finish searching, found minimum block (${from.name},${to.name})`]
  trials.addReport(result)
  trials.printReport(result)
  return new Set(block)
}

/** Binary search up to index `high` for the smallest end (`last`) or the largest start that still fails; null if nothing fails. */
function searchBlock(trials: Trials, nodes: readonly Node[], end: number, last: boolean): number | null {
  let [low, high] = [0, end]
  let found: number | null = null
  for (;;) {
    const middle = Math.floor((low + high) / 2)
    const { failed, report } = tryTarget(trials, nodes, low, high, last)
    if (failed) found = middle
    if (low === high) {
      report.push(
        ...(failed
          ? [
              'This is the last node in the sub-module. ',
              'Search in the current branch is successful with node :',
              `${middle}, node name: ${nodes[middle]?.name ?? ''}.`,
            ]
          : ['At last node, no culprits found.']),
      )
      trials.printReport(report)
      return found
    }
    report.push('Proceed to split and lower the halves of the current sub-module individually.')
    trials.printReport(report)
    if (failed === last) high = middle
    else low = middle + 1
  }
}

/** Runs the nodes up to (`last`) or from the middle of an interval. Returns whether they fail. */
function tryTarget(trials: Trials, nodes: readonly Node[], low: number, high: number, last: boolean): { failed: boolean; report: string[] } {
  const middle = Math.floor((low + high) / 2)
  const part = last ? nodes.slice(0, middle + 1) : nodes.slice(middle)
  trials.exclusionFn?.(part, -1, -1)
  const name = (index: number): string => nodes[index]?.name ?? ''
  const [from, to] = [part[0]?.name ?? '', part.at(-1)?.name ?? '']
  const [report, iteration] = trials.newReport()
  report.push(
    '='.repeat(30),
    `Block search iteration ${iteration}`,
    `Search for ${last ? 'last' : 'first'} node in culprits`,
    `From node index ${low}:${name(low)} to ${high}:${name(high)}. `,
    `Subgraph constructed by ${from} to ${to}`,
    `Targeting node: ${last ? to : from}`,
    `Size of the interested node list is ${high - low + 1}`,
  )
  const failed = part.length > 0 && trials.attempt(part, [to], report) !== 'equal'
  report.push(failed ? `Culprits found from node ${from} to ${to}.` : `Culprits not found from node start to ${middle}:${name(middle)}.`)
  return { failed, report }
}
