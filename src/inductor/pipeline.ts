// The whole of inductor in order: lower, schedule, plan memory, emit, assemble. `compileFx` is the backend function that dynamo calls.
import type { GraphModule } from '../fx/index.ts'
import { compileKernel, printKernel } from '../kernels/index.ts'
import type { CompiledKernel } from '../kernels/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { TensorSpec } from '../tensor/index.ts'
import { emitLoops } from './codegen.ts'
import { lower } from './lowering.ts'
import { planMemory } from './memoryPlan.ts'
import type { Lifetime } from './memoryPlan.ts'
import { outputsOf } from './ir.ts'
import type { Buffer, IrGraph, IrNode } from './ir.ts'
import { buildProgram } from './program.ts'
import type { Step } from './program.ts'
import { schedule } from './scheduler.ts'
import type { Group } from './scheduler.ts'
import { emitTemplate } from './templates.ts'
import { placeInPlace } from './writeBacks.ts'

/** One kernel of a compiled graph, for people: what was fused, and its loops. */
export interface KernelReport {
  readonly name: string
  readonly kind: Group['kind']
  /** Operators in it, in order. */
  readonly ops: readonly string[]
  /** Graph nodes that it computes. */
  readonly origins: readonly string[]
  /** The loop IR as text; for an extern step the operator's name. */
  readonly text: string
}

/** A compiled graph: call it with one value per placeholder; it returns the graph's outputs as an array. */
export interface CompiledGraph {
  (...inputs: unknown[]): unknown[]
  readonly kernels: readonly KernelReport[]
  /** The generated JavaScript that calls the kernels. */
  readonly source: string
  /** Bytes of the arena that its temporaries share. */
  readonly arenaBytes: number
  /** Output positions that were written straight into their input's memory (see `meta.writeBacks` of the graph module). */
  readonly writtenInPlace: ReadonlySet<number>
}

let compiledGraphs = 0

/**
 * Compiles a functional graph to fused WebAssembly kernels; the backend 'inductor'.
 * `exampleInputs` give the specs of the placeholders (tensors, real or fake, or numbers); they are not read.
 * `gm.meta.writeBacks` (output position -> placeholder position) names outputs whose value the caller stores into an input: where no reader
 * can tell the difference they are written in place.
 */
export function compileFx(gm: GraphModule, exampleInputs: readonly unknown[]): CompiledGraph {
  const specs = exampleInputs.map((input) => (input instanceof Tensor ? specOf(input) : null))
  const graph = lower(gm, specs)
  const groups = schedule(withoutDeadNodes(graph))
  const inPlace = placeInPlace(graph, groups, (gm.meta as { writeBacks?: ReadonlyMap<number, number> }).writeBacks ?? new Map(), specs)
  const stored = storedBuffers(graph, groups)
  const plan = planMemory(lifetimesOf(graph, groups, stored, inPlace.buffers))
  const name = `compiled_graph_${compiledGraphs++}`
  const emitted = groups.map((group, i) => emitGroup(`${name}_k${i}`, group, stored, inPlace.buffers))
  const program = buildProgram(
    name,
    graph,
    emitted.map((e) => e.step),
    plan,
    inPlace,
  )
  const call = (...inputs: unknown[]): unknown[] => program.run(inputs)
  return Object.assign(call, {
    kernels: emitted.map((e) => e.report),
    source: program.source,
    arenaBytes: plan.bytes,
    writtenInPlace: inPlace.outputs,
  })
}

const specOf = (t: Tensor): TensorSpec => ({ shape: t.shape, dtype: t.dtype, strides: t.strides })

/** Nodes that some output needs. */
function withoutDeadNodes(graph: IrGraph): IrGraph {
  const live = new Set<IrNode>()
  const stack = graph.outputs.flatMap((o) => (o.kind === 'view' && o.view.buffer.producer !== null ? [o.view.buffer.producer] : []))
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (live.has(node)) continue
    live.add(node)
    for (const { buffer } of node.reads) if (buffer.producer !== null) stack.push(buffer.producer)
  }
  return { ...graph, nodes: graph.nodes.filter((n) => live.has(n) || (n.kind === 'extern' && n.def.tags.has('mutates'))) }
}

/** Buffers that must exist in memory: returned, or read by another kernel than the one that computes them. */
function storedBuffers(graph: IrGraph, groups: readonly Group[]): Set<Buffer> {
  const stored = new Set<Buffer>()
  for (const output of graph.outputs) if (output.kind === 'view') stored.add(output.view.buffer)
  for (const group of groups) {
    const mine = new Set(group.nodes.flatMap(outputsOf))
    for (const node of group.nodes) for (const { buffer } of node.reads) if (!mine.has(buffer)) stored.add(buffer)
  }
  return stored
}

/** When each temporary is alive, in steps. Inputs, returned buffers and results of extern steps have memory of their own. */
function lifetimesOf(graph: IrGraph, groups: readonly Group[], stored: ReadonlySet<Buffer>, inPlace: ReadonlyMap<Buffer, number>): Lifetime[] {
  const returned = new Set(graph.outputs.flatMap((o) => (o.kind === 'view' ? [o.view.buffer] : [])))
  const first = new Map<Buffer, number>()
  const last = new Map<Buffer, number>()
  groups.forEach((group, step) => {
    for (const node of group.nodes) {
      if (node.kind !== 'extern') {
        // Every computed value may be stored: a value that a later phase of the same kernel reads back needs memory too.
        first.set(node.out, step)
        last.set(node.out, step)
      }
      for (const { buffer } of node.reads) last.set(buffer, step)
    }
  })
  return [...first]
    .filter(([buffer]) => !returned.has(buffer) && !inPlace.has(buffer) && (stored.has(buffer) || needsScratchRow(groups, buffer)))
    .map(([buffer, start]) => ({ buffer, first: start, last: last.get(buffer) as number }))
}

/** Whether the kernel itself may store the value to read it back in a later loop: an inner value of a group with reductions. */
function needsScratchRow(groups: readonly Group[], buffer: Buffer): boolean {
  const node = buffer.producer
  if (node === null || node.kind !== 'pointwise' || !node.expensive) return false
  const group = groups.find((g) => g.levels.has(node))
  return group?.levels.get(node) === 'inner'
}

function emitGroup(
  name: string,
  group: Group,
  stored: ReadonlySet<Buffer>,
  inPlace: ReadonlyMap<Buffer, number>,
): { step: Step; report: KernelReport } {
  const ops = group.nodes.map((n) => n.op)
  const origins = [...new Set(group.nodes.map((n) => n.origin))]
  const node = group.nodes[0] as IrNode
  if (group.kind === 'extern' && node.kind === 'extern') {
    return { step: { kind: 'extern', node }, report: { name, kind: 'extern', ops, origins, text: node.def.qualname } }
  }
  let compiled: CompiledKernel
  let text: string
  if (group.kind === 'template') {
    const template = emitTemplate(name, group, stored)
    compiled = template.compiled
    text = `${name}: ${ops[0]} template [${group.dims.join(' x ')}]${ops.length > 1 ? `, epilogue ${ops.slice(1).join(' -> ')}` : ''}`
    return {
      step: { kind: 'kernel', name: label(ops), compiled, operands: template.operands, scratchBytes: template.scratchBytes },
      report: { name, kind: 'template', ops, origins, text },
    }
  }
  const { kernel, operands } = emitLoops(`fused_${ops.slice(0, 6).join('_')}`, group, stored, inPlace)
  compiled = compileKernel(kernel)
  text = printKernel(kernel)
  return { step: { kind: 'kernel', name: label(ops), compiled, operands, scratchBytes: 0 }, report: { name, kind: 'loops', ops, origins, text } }
}

const label = (ops: readonly string[]): string => (ops.length <= 8 ? ops.join(' ') : `${ops.slice(0, 7).join(' ')} … (${ops.length} operators)`)
