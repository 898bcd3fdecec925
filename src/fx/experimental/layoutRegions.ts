// Regions of a graph that compute in another layout: channels last, a narrower dtype, the tensors of a library. Their inputs are converted, their results are converted
// back, and conversions between neighbours cancel out. PyTorch's torch.fx.experimental.optimization, whose only layout is MKL-DNN's.
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { checkArgument, checkCount, checkOptions, isFunction, isObject } from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import { Module } from '../../module/index.ts'
import { present } from '../../errors/index.ts'
import type { Node } from '../graph/node.ts'
import type { GraphModule } from '../run/graphModule.ts'
import { getUniqueAttrNameInModule } from './constFold.ts'
import { UnionFind } from './unionFind.ts'

/** A region of a graph; PyTorch's MklSubgraph. */
export interface LayoutRegion {
  /** The nodes that compute in the layout, in graph order. */
  readonly nodes: readonly Node[]
  /** The conversions of what they read. */
  readonly startNodes: readonly Node[]
  /** The conversions of what they return. */
  readonly endNodes: readonly Node[]
}

/** A layout that a backend offers. */
export interface Layout {
  /** Converts a value into the layout: a function of one tensor, or the name of a method. */
  readonly enter: TargetFunction | string
  /** Converts a value back. */
  readonly leave: TargetFunction | string
  /** Whether a node can compute in the layout. */
  readonly supports: (node: Node, gm: GraphModule) => boolean
  /** Whether a node computes in the layout if one of its arguments already is in it: additions, for instance. Default: none. */
  readonly follows?: (node: Node, gm: GraphModule) => boolean
  /** Whether converting the inputs and results of a region is worth it. Default: {@link useLongRegions}; genLayoutAutotuner measures. */
  readonly heuristic?: (region: LayoutRegion) => boolean
  /** The layer that takes the place of one in a region: with its weights converted, for instance. Default: the layer itself. */
  readonly convert?: (layer: Module) => Module
}

const OPTIONS: Readonly<Record<keyof Layout, true>> = { enter: true, leave: true, supports: true, follows: true, heuristic: true, convert: true }

/** Whether a region has more than two nodes. PyTorch's use_mkl_length. */
export function useLongRegions(region: LayoutRegion): boolean {
  checkCount('useLongRegions', arguments, 1)
  checkArgument(isObject(region) && Array.isArray(region.nodes), 'useLongRegions', 'region', 'a region { nodes, startNodes, endNodes }', region)
  return region.nodes.length > 2
}

/** Throws ArgumentError unless `layout` can be used. */
export function checkLayout(where: string, layout: Layout): void {
  checkArgument(typeof layout === 'object' && layout !== null, where, 'layout', 'an object with enter, leave and supports', layout)
  checkOptions(where, layout, OPTIONS)
  const isConversion = (value: unknown): boolean => isFunction(value) || (typeof value === 'string' && value !== '')
  for (const part of ['enter', 'leave'] as const)
    checkArgument(isConversion(layout[part]), where, `layout.${part}`, 'a function or the name of a method', layout[part])
  checkArgument(isFunction(layout.supports), where, 'layout.supports', 'a function of a node and its GraphModule', layout.supports)
  for (const part of ['follows', 'heuristic', 'convert'] as const)
    if (layout[part] !== undefined) checkArgument(isFunction(layout[part]), where, `layout.${part}`, 'a function', layout[part])
}

/**
 * Lets the parts of a graph that support a layout compute in it, where the heuristic finds that worth the conversions. Changes `gm`, and returns the regions that do.
 * Time is linear in the size of the graph.
 *
 *     applyLayout(gm, { enter: toChannelsLast, leave: (x) => x.contiguous(), supports: (node) => node.op === 'call_module' })
 *
 * PyTorch's optimize_for_inference does this for MKL-DNN.
 * @throws ArgumentError for a layout that lacks something.
 */
export function applyLayout(gm: GraphModule, layout: Layout): LayoutRegion[] {
  checkCount('applyLayout', arguments, 2)
  checkGraphModule('applyLayout', gm)
  checkLayout('applyLayout', layout)
  const starts = new Set<Node>()
  const ends = new Set<Node>()
  surround(gm, layout, starts, ends)
  cancelPairs(gm, starts, ends)
  const { heuristic = useLongRegions, convert } = layout
  const used: LayoutRegion[] = []
  for (const region of regionsOf(gm, starts, ends)) {
    if (!heuristic(region)) {
      for (const node of [...region.startNodes, ...region.endNodes]) {
        node.replaceAllUsesWith(inputOf(node))
        gm.graph.eraseNode(node)
      }
      continue
    }
    used.push(region)
    if (convert !== undefined) convertLayers(gm, region.nodes, convert)
  }
  gm.graph.lint()
  gm.recompile()
  return used
}

/** Nodes that {@link applyLayout} has added. */
const conversions = new WeakSet<Node>()

/** Whether a node converts a value into a layout, or back. */
export const isConversion = (node: Node): boolean => conversions.has(node)

/** The value that a node converts. */
export const inputOf = (conversion: Node): Node => present(conversion.allInputNodes[0], `the value that '${conversion.name}' converts`)

/** Puts conversions before and after each node that can compute in the layout. */
function surround(gm: GraphModule, layout: Layout, starts: Set<Node>, ends: Set<Node>): void {
  const { graph } = gm
  const converted = (target: TargetFunction | string, value: Node): Node => {
    const node = typeof target === 'string' ? graph.callMethod(target, [value]) : graph.callFunction(target, [value])
    conversions.add(node)
    return node
  }
  for (const node of [...graph.nodes]) {
    if (node.op === 'placeholder' || node.op === 'get_attr' || node.op === 'output') continue
    if (!layout.supports(node, gm)) {
      if (layout.follows?.(node, gm) !== true || !node.allInputNodes.some((input) => ends.has(input))) continue
    }
    for (const input of node.allInputNodes) {
      const start = graph.insertingBefore(node, () => converted(layout.enter, input))
      starts.add(start)
      node.replaceInputWith(input, start)
    }
    const end = graph.insertingAfter(node, () => converted(layout.leave, node))
    ends.add(end)
    node.replaceAllUsesWith(end, (user) => user !== end)
  }
}

/** Removes conversions into the layout of values that were converted back from it. */
function cancelPairs(gm: GraphModule, starts: Set<Node>, ends: Set<Node>): void {
  const erase = (node: Node, kind: Set<Node>): void => {
    kind.delete(node)
    gm.graph.eraseNode(node)
  }
  for (const end of ends) {
    const value = inputOf(end)
    for (const user of [...end.users]) {
      if (!starts.has(user)) continue
      user.replaceAllUsesWith(value)
      erase(user, starts)
    }
    if (end.users.size === 0) erase(end, ends)
  }
}

/** The connected parts between conversions, in the order of their first conversions. */
function regionsOf(gm: GraphModule, starts: ReadonlySet<Node>, ends: ReadonlySet<Node>): LayoutRegion[] {
  const sets = new UnionFind(gm.graph.size)
  const colors = new Map<Node, number>()
  for (const [i, node] of [...gm.graph.nodes].entries()) {
    if (starts.has(node)) {
      sets.makeSet(i)
      colors.set(node, i)
    }
    if (starts.has(node) || ends.has(node)) continue
    const [first, ...others] = node.allInputNodes.flatMap((input) => (ends.has(input) ? [] : (colors.get(input) ?? [])))
    if (first === undefined) continue
    colors.set(node, first)
    for (const other of others) sets.join(first, other)
  }
  const regions = new Map<number, { nodes: Node[]; startNodes: Node[]; endNodes: Node[] }>()
  for (const node of gm.graph.nodes) {
    const color = colors.get(ends.has(node) ? inputOf(node) : node)
    if (color === undefined) continue
    const root = sets.find(color)
    let region = regions.get(root)
    if (region === undefined) regions.set(root, (region = { nodes: [], startNodes: [], endNodes: [] }))
    const part = starts.has(node) ? region.startNodes : ends.has(node) ? region.endNodes : region.nodes
    part.push(node)
  }
  return [...regions.values()]
}

/** Puts converted layers in the place of those that a region calls. A layer that is also called elsewhere keeps its path there. */
export function convertLayers(gm: GraphModule, nodes: readonly Node[], convert: (layer: Module) => Module): void {
  const inside = new Set(nodes)
  const done = new Map<string, string>()
  for (const node of nodes) {
    if (node.op !== 'call_module') continue
    const { target } = node
    let path = done.get(target)
    if (path === undefined) {
      const isShared = gm.graph.findNodes({ op: 'call_module', target }).some((call) => !inside.has(call))
      path = isShared ? getUniqueAttrNameInModule(gm, target) : target
      const layer = gm.attribute(target)
      if (layer instanceof Module) gm.addSubmodule(path, convert(layer))
      done.set(target, path)
    }
    node.target = path
  }
}
