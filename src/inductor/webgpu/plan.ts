// A graph as steps on the GPU: the stages of inductor up to fusion, each group as a shader, and the place of each buffer in the slab.
import { UnsupportedError } from '../../errors/index.ts'
import { originOf } from '../../fx/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import type { Dispatch } from '../../gpu/requests.ts'
import { placeSpans } from '../../kernels/index.ts'
import type { Grid } from '../../kernels/index.ts'
import { emitGrid, wordsPer } from '../../kernels/wgsl/emitGrid.ts'
import type { Shader } from '../../kernels/wgsl/emitGrid.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { costOf } from '../cost.ts'
import { emitGroup } from '../emit/kernels.ts'
import type { EmittedGroup, KernelReport } from '../emit/kernels.ts'
import { loopGrid } from '../emit/loops.ts'
import type { GroupGrid } from '../emit/loops.ts'
import type { Operand } from '../emit/operands.ts'
import { prepareTemplate } from '../emit/template.ts'
import { groupOf, nodesOf } from '../groups.ts'
import type { Group } from '../groups.ts'
import { outputsOf, returnedBuffers, withoutDeadNodes } from '../ir.ts'
import type { Buffer, BufferView, ExternNode, IrGraph } from '../ir.ts'
import { nth } from '../known.ts'
import { lower } from '../lowering.ts'
import { lifetimesOf } from '../memoryPlan.ts'
import { placeBuffers } from '../placement.ts'
import type { Placement } from '../placement.ts'
import { schedule } from '../scheduler.ts'
import { product } from '../spaces.ts'
import { copied } from './gridWriter.ts'
import { checkGrid, checksFor, operatorGrids } from './operators.ts'
import type { Checked } from './operators.ts'
import { templateGrid } from './sums.ts'

/** A number of the call: which input, and where it goes. */
export interface CallNumber {
  readonly placeholder: number
  readonly dispatch: number
  readonly at: number
  readonly dtype: TensorSpec['dtype']
}

/** One step: dispatches in a row, or what WebAssembly does between them. */
export type PlannedStep =
  | { readonly kind: 'device'; readonly from: number; readonly to: number }
  | { readonly kind: 'operator'; readonly node: ExternNode }
  | { readonly kind: 'kernel'; readonly step: Extract<EmittedGroup['step'], { kind: 'kernel' }> }

/** A word of a dispatch's uniforms that says where a memory begins: that of a buffer, from this word of it on, or of the program itself. */
export interface MemoryWord {
  readonly dispatch: number
  readonly at: number
  readonly buffer: Buffer | null
  readonly start: number
}

/** Indices that a step has looked at, and what it found. */
export interface IndexCheck {
  readonly step: number
  readonly node: ExternNode
  readonly checked: Checked
  /** A pair for each thread: the flat position of the first index that is out of range, from 1 on, and that index. */
  readonly found: Buffer
}

/** Everything that the GPU needs to run a graph. */
export interface DevicePlan {
  readonly graph: IrGraph
  readonly dispatches: readonly Dispatch[]
  readonly numbers: readonly CallNumber[]
  readonly memories: readonly MemoryWord[]
  readonly checks: readonly IndexCheck[]
  readonly steps: readonly PlannedStep[]
  /** The first word of each buffer. */
  readonly places: ReadonlyMap<Buffer, number>
  /** How many elements of each input the program may read. */
  readonly extents: ReadonlyMap<Buffer, number>
  /** The step that computes each buffer. */
  readonly writers: ReadonlyMap<Buffer, number>
  readonly words: number
  /** The groups of graph nodes that it computes together. */
  readonly groups: readonly PlannedGroup[]
  /** The results that lie in the memory of inputs, with their positions; and the outputs that these are. */
  readonly inPlace: ReadonlyMap<Buffer, number>
  readonly outputsInPlace: ReadonlySet<number>
}

/** A group of graph nodes, for reports. */
export type PlannedGroup = Omit<KernelReport, 'engine'>

/** Buffers begin at multiples of this many words. */
const ALIGN = 64

/** Plans a copy of a view to a window of other memory, for tensors that stay on the GPU. */
export function planCopy(from: BufferView, to: Buffer, strides: readonly number[]): DevicePlan {
  const graph: IrGraph = { inputs: [from.buffer, to], nodes: [], outputs: [], rewritten: [] }
  const placement = placeBuffers(graph, [], new Map(), [])
  const planner = new Planner({ graph, groups: [], placement, fallback: 'error', lines: new Map(), onHeap: true })
  return planner.plan([copied('copy', from, to, strides, 0)])
}

/**
 * Plans a functional graph; with `writeBacks`, for tensors that stay on the GPU: the outputs that are written to an input, and which. Throws UnsupportedError, which names the node, for what has no
 * shader code unless `fallback` is `'wasm'`.
 */
export function planGraph(
  gm: GraphModule,
  specs: readonly (TensorSpec | number)[],
  fallback: 'error' | 'wasm',
  writeBacks: ReadonlyMap<number, number> | null = null,
): DevicePlan {
  const graph = withoutDeadNodes(lower(gm, specs, { composed: true }))
  const groups = schedule(graph, null)
  const placement = placeBuffers(graph, groups, writeBacks ?? new Map(), specs)
  return new Planner({ graph, groups, placement, fallback, lines: linesOf(gm), onHeap: writeBacks !== null }).plan()
}

/** The graph nodes that have no shader, each looked at by itself: in a group with others any of them may be why it has none. Throws UnsupportedError for graphs that are not flat calls of operators. */
export function nodesWithoutShader(gm: GraphModule, specs: readonly (TensorSpec | number)[]): ReadonlySet<string> {
  const graph = withoutDeadNodes(lower(gm, specs, { composed: true }))
  const groups = graph.nodes.map(groupOf)
  const placement = placeBuffers(graph, groups, new Map(), specs)
  return new Planner({ graph, groups, placement, fallback: 'error', lines: new Map(), onHeap: true }).refused()
}

/** The line of the program that each node comes from, where it is known. */
function linesOf(gm: GraphModule): ReadonlyMap<string, string> {
  const lines = new Map<string, string>()
  for (const node of gm.graph.nodes) {
    const frame = originOf(node)
    if (frame !== null) lines.set(node.name, `${frame.file}:${frame.line}`)
  }
  return lines
}

interface Given {
  readonly graph: IrGraph
  readonly groups: readonly Group[]
  readonly placement: Placement
  readonly fallback: 'error' | 'wasm'
  readonly lines: ReadonlyMap<string, string>
  /** Whether inputs and results lie in the memory of tensors: the program's own has no place for them. */
  readonly onHeap: boolean
}

class Planner {
  readonly #graph: IrGraph
  readonly #groups: readonly Group[]
  readonly #placement: Placement
  readonly #fallback: 'error' | 'wasm'
  readonly #onHeap: boolean
  readonly #lines: ReadonlyMap<string, string>
  readonly #dispatches: Dispatch[] = []
  readonly #numbers: CallNumber[] = []
  readonly #memories: MemoryWord[] = []
  readonly #checks: IndexCheck[] = []
  readonly #steps: PlannedStep[] = []
  readonly #places = new Map<Buffer, number>()
  readonly #extents: ReadonlyMap<Buffer, number>
  readonly #writers = new Map<Buffer, number>()
  readonly #reports: PlannedGroup[] = []
  #words = 0

  constructor({ graph, groups, placement, fallback, lines, onHeap }: Given) {
    this.#graph = graph
    this.#groups = groups
    this.#placement = placement
    this.#fallback = fallback
    this.#onHeap = onHeap
    this.#lines = lines
    this.#extents = extentsOf(graph)
  }

  plan(grids: readonly GroupGrid[] = []): DevicePlan {
    this.#placeAll()
    for (const grid of grids) this.#dispatch(grid, [])
    this.#groups.forEach((group, i) => {
      const first = this.#dispatches.length
      const name = `k${i}_${nodesOf(group)[0]?.op ?? 'none'}`
      this.#add(name, group)
      this.#report(name, group, this.#dispatches.slice(first))
      for (const node of nodesOf(group)) for (const buffer of outputsOf(node)) this.#writers.set(buffer, this.#steps.length - 1)
    })
    return {
      ...{
        graph: this.#graph,
        dispatches: this.#dispatches,
        numbers: this.#numbers,
        steps: this.#steps,
        checks: this.#checks,
        memories: this.#memories,
        groups: this.#reports,
        inPlace: this.#placement.inPlace,
        outputsInPlace: this.#placement.outputsInPlace,
      },
      ...{ places: this.#places, extents: this.#extents, writers: this.#writers, words: this.#words },
    }
  }

  /** The graph nodes of the groups that have no shader. */
  refused(): ReadonlySet<string> {
    this.#placeAll()
    const origins = this.#groups.flatMap((group, i) => {
      try {
        this.#add(`k${i}`, group)
        return []
      } catch (error) {
        if (error instanceof UnsupportedError) return nodesOf(group).map(({ origin }) => origin)
        throw error
      }
    })
    return new Set(origins)
  }

  #report(name: string, group: Group, dispatches: readonly Dispatch[]): void {
    const nodes = nodesOf(group)
    const stored = nodes.flatMap(outputsOf).filter((buffer) => group.kind === 'extern' || this.#placement.stored.has(buffer))
    this.#reports.push({
      name,
      kind: group.kind,
      ops: nodes.map(({ op }) => op),
      origins: [...new Set(nodes.map(({ origin }) => origin))],
      text: dispatches.map(({ code }) => code).join('\n'),
      ...costOf(group, new Set(stored)),
    })
  }

  /** Temporaries share memory where their lifetimes allow it; inputs, results and what WebAssembly computes have their own. */
  #placeAll(): void {
    const lifetimes = lifetimesOf(this.#graph, this.#groups, this.#placement)
    const spans = lifetimes.map(({ buffer, first, last }) => ({ bytes: 4 * wordsPer(buffer.dtype) * buffer.numel, first, last }))
    const { offsets, bytes } = placeSpans(spans)
    lifetimes.forEach(({ buffer }, i) => this.#places.set(buffer, (offsets[i] ?? 0) / 4))
    this.#words = Math.ceil(bytes / 4)
    const outside = [...this.#graph.inputs, ...returnedBuffers(this.#graph)]
    if (this.#onHeap) for (const buffer of outside) if (buffer !== null) this.#places.set(buffer, 0)
    const others = [...outside, ...this.#graph.nodes.flatMap((node) => (node.kind === 'extern' ? outputsOf(node) : []))]
    for (const buffer of others)
      if (buffer !== null && !this.#places.has(buffer))
        this.#places.set(buffer, this.#reserve(wordsPer(buffer.dtype) * (this.#extents.get(buffer) ?? buffer.numel)))
  }

  #reserve(words: number): number {
    const start = Math.ceil(this.#words / ALIGN) * ALIGN
    this.#words = start + words
    return start
  }

  #add(name: string, group: Group): void {
    const nodes = [...new Set(nodesOf(group).map(({ origin }) => origin))]
    const where = `at node ${nodes.join(', ')}`
    if (group.kind === 'extern') {
      const { node } = group
      // Nothing is computed where there are no elements.
      if (node.outs.every(({ numel }) => numel === 0)) return
      if (this.#operator(name, node, nodes)) return
      if (node.def.tags.has('mutates'))
        throw new UnsupportedError(`WebGPU: ${node.def.qualname} ${where} writes to its arguments, which graphs on the GPU cannot do.`)
      this.#refuse(`WebGPU: ${node.def.qualname} ${where} has no shader code (${node.reason})`)
      this.#steps.push({ kind: 'operator', node })
      return
    }
    const grid = group.kind === 'template' ? this.#templateGrid(name, group) : loopGrid(name, group, this.#placement)
    const why = grid === null ? 'its template runs as WebAssembly only' : whyNot(grid.grid)
    if (grid === null || why !== null) {
      this.#refuse(`WebGPU: ${where}: ${why}`)
      const { step } = emitGroup(name, group, this.#placement)
      if (step.kind === 'kernel') this.#steps.push({ kind: 'kernel', step })
      return
    }
    this.#dispatch(grid, nodes)
  }

  /** An operator as dispatches; false if it has no shader. */
  #operator(name: string, node: ExternNode, nodes: readonly string[]): boolean {
    const made = operatorGrids(name, node)
    if (made === null) return false
    const { grids, checked } = made
    const parts = checked === null ? 0 : checksFor(product(checked.indices.shape))
    const found: Buffer = { name: `${name}_found`, shape: [parts, 2], dtype: 'int64', numel: 2 * parts, input: -1, producer: null }
    const all = checked === null || parts === 0 ? grids : [checkGrid(`${name}_check`, checked.indices, checked, found), ...grids]
    if (all.some(({ grid }) => whyNot(grid) !== null)) return false
    // Where tensors stay on the GPU, what is found does too.
    if (parts > 0) this.#places.set(found, this.#onHeap ? 0 : this.#reserve(2 * found.numel))
    for (const grid of all) this.#dispatch(grid, nodes)
    if (checked !== null && parts > 0) this.#checks.push({ step: this.#steps.length - 1, node, checked, found })
    return true
  }

  #refuse(message: string): void {
    if (this.#fallback === 'error') throw new UnsupportedError(`${message}. Let WebAssembly compute it: init({ fallback: 'wasm' }).`)
  }

  #templateGrid(name: string, group: Extract<Group, { kind: 'template' }>): GroupGrid | null {
    const prepared = prepareTemplate(group, this.#placement)
    const grid = templateGrid(name, group.template, prepared)
    return grid === null ? null : { grid, operands: prepared.operands }
  }

  #dispatch({ grid, operands }: GroupGrid, nodes: readonly string[]): void {
    const shader = emitGrid(grid)
    const threads = product(grid.loops.map(({ extent, step }) => Math.ceil(Number(extent) / step)))
    const dispatch = this.#dispatches.length
    const words = this.#uniforms(grid, shader, operands, threads)
    this.#dispatches.push({
      name: grid.name,
      nodes,
      lines: [...new Set(nodes.flatMap((node) => this.#lines.get(node) ?? []))],
      code: shader.code,
      threads,
      words,
    })
    const last = this.#steps.at(-1)
    if (last?.kind === 'device') this.#steps[this.#steps.length - 1] = { ...last, to: dispatch + 1 }
    else this.#steps.push({ kind: 'device', from: dispatch, to: dispatch + 1 })
  }

  #uniforms(grid: Grid, shader: Shader, operands: readonly Operand[], threads: number): Uint32Array<ArrayBuffer> {
    const words = new Uint32Array(4 * Math.ceil(shader.words.length / 4))
    shader.words.forEach((word, at) => {
      if (word.kind === 'threads') words[at] = threads
      else if (word.kind === 'memory') {
        const { memory } = word
        if (memory.kind === 'scratch') {
          words[at] = this.#reserve(threads * Number(memory.elements) * wordsPer(memory.dtype))
          this.#memories.push({ dispatch: this.#dispatches.length, at, buffer: null, start: words[at] })
        } else {
          const operand = operands[grid.params.indexOf(memory)]
          if (operand?.kind === 'buffer') {
            const start = operand.offset * wordsPer(operand.buffer.dtype)
            const held = this.#placement.inPlace.get(operand.buffer)
            const buffer = held === undefined ? operand.buffer : nth(this.#graph.inputs, held)
            words[at] = (buffer === null ? 0 : (this.#places.get(buffer) ?? 0)) + start
            this.#memories.push({ dispatch: this.#dispatches.length, at, buffer, start })
          }
        }
      } else if (word.kind === 'number' && word.param.kind === 'scalar' && word.half === 0) {
        const operand = operands[grid.params.indexOf(word.param)]
        if (operand?.kind === 'scalar')
          this.#numbers.push({ placeholder: operand.input.placeholder, dispatch: this.#dispatches.length, at, dtype: word.param.dtype })
      }
    })
    return words
  }
}

/** Why a grid has no shader; null if it has one. */
function whyNot(grid: Grid): string | null {
  try {
    emitGrid(grid)
    return null
  } catch (error) {
    if (error instanceof UnsupportedError) return error.message.replace(/^WebGPU: /, '').replace(/, or let WebAssembly.*$/, '')
    throw error
  }
}

/** How many elements of each buffer are read, or written if that is more. */
function extentsOf(graph: IrGraph): ReadonlyMap<Buffer, number> {
  const extents = new Map<Buffer, number>()
  const note = (buffer: Buffer, shape: readonly number[], strides: readonly number[], offset: number): void => {
    if (shape.includes(0)) return
    const last = shape.reduce((sum, size, i) => sum + Math.max(0, (size - 1) * (strides[i] ?? 0)), offset)
    extents.set(buffer, Math.max(extents.get(buffer) ?? buffer.numel, last + 1))
  }
  for (const node of graph.nodes)
    for (const access of node.reads) {
      const shape = 'shape' in access ? (access as { shape: readonly number[] }).shape : node.kind === 'extern' ? [] : node.iter
      const factor = access.buffer.isComplex === true && node.kind === 'extern' ? 2 : 1
      note(
        access.buffer,
        shape,
        access.strides.map((stride) => stride * factor),
        access.offset * factor,
      )
    }
  return extents
}
