// A graph as steps on the GPU: the stages of inductor up to fusion, each group as a shader, and the place of each buffer in the slab.
import { UnsupportedError } from '../../errors/index.ts'
import { originOf } from '../../fx/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import type { Dispatch } from '../../gpu/requests.ts'
import type { Grid, Memory } from '../../kernels/index.ts'
import { emitGrid } from '../../kernels/wgsl/emitGrid.ts'
import { wordsPer } from '../../kernels/wgsl/shader.ts'
import { teamOf } from '../../kernels/wgsl/team.ts'
import type { Shader } from '../../kernels/wgsl/shader.ts'
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
import type { Buffer, BufferView, ExternArg, ExternNode, IrGraph } from '../ir.ts'
import { nth } from '../known.ts'
import { lifetimesOf } from '../memoryPlan.ts'
import { placeBuffers } from '../placement.ts'
import type { Placement } from '../placement.ts'
import { schedule } from '../scheduler.ts'
import { product } from '../spaces.ts'
import { lowerForDevice } from './copiedInputs.ts'
import { copied, wordsOfTable } from './gridWriter.ts'
import type { CallNumber, DispatchForm, MemoryWord, OwnMemory } from './layout.ts'
import { checkGrid, checksFor, operatorGrids } from './operators.ts'
import type { Checked, OperatorGrids } from './operators.ts'
import { templateGrid } from './sums.ts'

/** One step: dispatches in a row, or what WebAssembly does between them. */
export type PlannedStep =
  | { readonly kind: 'device'; readonly from: number; readonly to: number }
  | { readonly kind: 'operator'; readonly node: ExternNode }
  | { readonly kind: 'kernel'; readonly step: Extract<EmittedGroup['step'], { kind: 'kernel' }> }

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
  /** For memory in one slab. */
  readonly dispatches: readonly Dispatch[]
  readonly numbers: readonly CallNumber[]
  readonly memories: readonly MemoryWord[]
  /** The same for memory in several slabs, with that number of them in each dispatch. */
  readonly several: (slabs: number) => DispatchForm
  readonly checks: readonly IndexCheck[]
  readonly steps: readonly PlannedStep[]
  /** Its own memory. */
  readonly memory: OwnMemory
  /** How many elements of each input the program may read. */
  readonly extents: ReadonlyMap<Buffer, number>
  /** The step that computes each buffer. */
  readonly writers: ReadonlyMap<Buffer, number>
  /** The groups of graph nodes that it computes together. */
  readonly groups: readonly PlannedGroup[]
  /** The results that lie in the memory of inputs, with their positions; and the outputs that these are. */
  readonly inPlace: ReadonlyMap<Buffer, number>
  readonly outputsInPlace: ReadonlySet<number>
}

/** A group of graph nodes, for reports. */
export type PlannedGroup = Omit<KernelReport, 'engine'>

/** Plans a copy of a view to a window of other memory, for tensors that stay on the GPU. */
export function planCopy(from: BufferView, to: Buffer, strides: readonly number[]): DevicePlan {
  const graph: IrGraph = { inputs: [from.buffer, to], nodes: [], outputs: [], rewritten: [], draws: 0 }
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
  const graph = withoutDeadNodes(lowerForDevice(gm, specs))
  const groups = schedule(graph, null)
  const placement = placeBuffers(graph, groups, writeBacks ?? new Map(), specs)
  return new Planner({ graph, groups, placement, fallback, lines: linesOf(gm), onHeap: writeBacks !== null }).plan()
}

/** The graph nodes that have no shader, each looked at by itself: in a group with others any of them may be why it has none. Throws UnsupportedError for graphs that are not flat calls of operators. */
export function nodesWithoutShader(gm: GraphModule, specs: readonly (TensorSpec | number)[]): ReadonlySet<string> {
  const graph = withoutDeadNodes(lowerForDevice(gm, specs))
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
  /** What has no lowering, as grids; null where WebAssembly computes it. */
  readonly #operators = new Map<ExternNode, OperatorGrids | null>()
  #shared: OwnMemory['shared'][number][] = []
  /** The group that is being planned. */
  #step = 0
  readonly #others: OwnMemory['others'][number][] = []
  readonly #tables: OwnMemory['tables'][number][] = []
  /** Buffers that have memory. */
  readonly #known = new Set<Buffer>()
  /** What was emitted, to be emitted for several slabs. */
  readonly #emitted: { readonly group: GroupGrid; readonly scratch: ReadonlyMap<Memory, Buffer> }[] = []
  readonly #extents: ReadonlyMap<Buffer, number>
  readonly #writers = new Map<Buffer, number>()
  readonly #reports: PlannedGroup[] = []

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
      const name = nameOf(group, i)
      this.#step = i
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
      ...{ memory: { shared: this.#shared, others: this.#others, tables: this.#tables }, extents: this.#extents, writers: this.#writers },
      several: (slabs) => this.#several(slabs),
    }
  }

  /** The graph nodes of the groups that have no shader. */
  refused(): ReadonlySet<string> {
    this.#placeAll()
    const origins = this.#groups.flatMap((group, i) => {
      try {
        this.#step = i
        this.#add(nameOf(group, i), group)
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

  /** Temporaries share memory where their lifetimes allow it; inputs, results and what WebAssembly computes have their own. Where tensors stay on the GPU, inputs and results lie there. */
  #placeAll(): void {
    const outside = [...this.#graph.inputs, ...returnedBuffers(this.#graph)]
    const there = new Set(this.#onHeap ? outside : [])
    this.#groups.forEach((group, i) => {
      if (group.kind === 'extern') this.#operators.set(group.node, gridsOf(nameOf(group, i), group.node))
    })
    const isPlaced = (node: ExternNode): boolean => (this.#operators.get(node) ?? null) !== null
    this.#shared = lifetimesOf(this.#graph, this.#groups, this.#placement, isPlaced).filter(({ buffer }) => !there.has(buffer))
    const others = [...outside, ...this.#graph.nodes.flatMap((node) => (node.kind === 'extern' ? outputsOf(node) : []))]
    for (const buffer of [...this.#shared.map(({ buffer: one }) => one), ...there]) if (buffer !== null) this.#known.add(buffer)
    for (const buffer of others) {
      if (buffer === null || this.#known.has(buffer)) continue
      this.#reserve(buffer, wordsPer(buffer.dtype) * (this.#extents.get(buffer) ?? buffer.numel))
    }
  }

  /** Tables, and memory between the grids of an operator, are known by the grids alone. */
  #hold(buffer: Buffer): void {
    if (this.#known.has(buffer) || this.#placement.inPlace.has(buffer)) return
    const words = wordsOfTable(buffer)
    this.#known.add(buffer)
    if (words === null) this.#lend(buffer)
    else this.#tables.push({ buffer, words })
  }

  /** Memory for the time of a group: what lies between its dispatches. */
  #lend(buffer: Buffer): void {
    this.#known.add(buffer)
    this.#shared.push({ buffer, first: this.#step, last: this.#step })
  }

  #reserve(buffer: Buffer, words: number): void {
    this.#known.add(buffer)
    this.#others.push({ buffer, words })
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
      // What takes no tensors the program computes before the GPU needs it: nothing is waited for.
      if (this.#onHeap || node.args.flatMap(tensorsOf).length > 0)
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
    const made = this.#operators.get(node) ?? null
    if (made === null) return false
    const { grids, checked } = made
    const parts = checked === null ? 0 : checksFor(product(checked.indices.shape))
    const found: Buffer = { name: `${name}_found`, shape: [parts, 2], dtype: 'int64', numel: 2 * parts, input: -1, producer: null }
    const all = checked === null || parts === 0 ? grids : [checkGrid(`${name}_check`, checked.indices, checked, found), ...grids]
    // Where tensors stay on the GPU, what is found does too.
    if (parts > 0 && this.#onHeap) this.#known.add(found)
    else if (parts > 0) this.#reserve(found, 2 * found.numel)
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

  #dispatch(group: GroupGrid, nodes: readonly string[]): void {
    const { grid } = group
    const threads = product(grid.loops.map(({ extent, step }) => Math.ceil(Number(extent) / step)))
    // Nothing is computed where there are no elements; its shader would divide by their number.
    if (threads === 0) return
    const scratch = new Map(
      grid.scratch.map((memory): [Memory, Buffer] => {
        const numel = threads * Number(memory.elements)
        return [memory, { name: memory.name, shape: [numel], dtype: memory.dtype, numel, input: -1, producer: null }]
      }),
    )
    for (const buffer of scratch.values()) this.#lend(buffer)
    for (const operand of group.operands) if (operand.kind === 'buffer') this.#hold(operand.buffer)
    const dispatch = this.#dispatches.length
    this.#emitted.push({ group, scratch })
    const team = teamOf(grid, threads)
    const { shader, ...form } = this.#form(dispatch, 1, { threads, team })
    this.#memories.push(...form.memories)
    this.#numbers.push(...form.numbers)
    this.#dispatches.push({
      name: grid.name,
      nodes,
      lines: [...new Set(nodes.flatMap((node) => this.#lines.get(node) ?? []))],
      code: shader.code,
      slabs: 1,
      threads,
      team,
      words: form.words,
    })
    const last = this.#steps.at(-1)
    if (last?.kind === 'device') this.#steps[this.#steps.length - 1] = { ...last, to: dispatch + 1 }
    else this.#steps.push({ kind: 'device', from: dispatch, to: dispatch + 1 })
  }

  /** A dispatch for that number of slabs: its shader, and what its uniforms hold. */
  #form(dispatch: number, slabs: number, { threads, team }: Pick<Dispatch, 'threads' | 'team'>): FormOfDispatch {
    const { group, scratch } = nth(this.#emitted, dispatch)
    const { grid, operands } = group
    const shader = emitGrid(grid, { slabs, team })
    const words = new Uint32Array(4 * Math.ceil(shader.words.length / 4))
    const memories: MemoryWord[] = []
    const numbers: CallNumber[] = []
    const slabOf = new Map(shader.words.flatMap((word, at) => (word.kind === 'slab' ? [[word.memory, at] as const] : [])))
    shader.words.forEach((word, at) => {
      if (word.kind === 'threads') words[at] = threads
      else if (word.kind === 'memory') {
        const slabAt = slabOf.get(word.memory) ?? null
        const own = scratch.get(word.memory)
        const place = own === undefined ? this.#placed(grid, operands, word.memory) : { buffer: own, start: 0 }
        if (place !== null) memories.push({ dispatch, at, slabAt, ...place })
      } else if (word.kind === 'number' && word.param.kind === 'scalar' && word.half === 0) {
        const operand = operands[grid.params.indexOf(word.param)]
        if (operand?.kind === 'scalar') numbers.push({ placeholder: operand.input.placeholder, dispatch, at, dtype: word.param.dtype })
      }
    })
    return { shader, words, memories, numbers }
  }

  /** The buffer that a parameter is a part of, and the word of it that it begins at. */
  #placed(grid: Grid, operands: readonly Operand[], memory: Memory): { readonly buffer: Buffer; readonly start: number } | null {
    const operand = memory.kind === 'scratch' ? undefined : operands[grid.params.indexOf(memory)]
    if (operand?.kind !== 'buffer') return null
    const held = this.#placement.inPlace.get(operand.buffer)
    const buffer = held === undefined ? operand.buffer : nth(this.#graph.inputs, held)
    return buffer === null ? null : { buffer, start: operand.offset * wordsPer(operand.buffer.dtype) }
  }

  #several(slabs: number): DispatchForm {
    const forms = this.#dispatches.map((dispatch, i) => this.#form(i, slabs, dispatch))
    return {
      dispatches: this.#dispatches.map((dispatch, i) => {
        const { shader, words } = nth(forms, i)
        return { ...dispatch, code: shader.code, words, slabs }
      }),
      memories: forms.flatMap(({ memories }) => memories),
      numbers: forms.flatMap(({ numbers }) => numbers),
    }
  }
}

interface FormOfDispatch {
  readonly shader: Shader
  readonly words: Uint32Array<ArrayBuffer>
  readonly memories: readonly MemoryWord[]
  readonly numbers: readonly CallNumber[]
}

const nameOf = (group: Group, i: number): string => `k${i}_${nodesOf(group)[0]?.op ?? 'none'}`

/** An operator's call as grids that have shaders; null if it has none. */
function gridsOf(name: string, node: ExternNode): OperatorGrids | null {
  const made = operatorGrids(name, node)
  return made === null || made.grids.some(({ grid }) => whyNot(grid) !== null) ? null : made
}

const tensorsOf = (arg: ExternArg): readonly BufferView[] =>
  arg.kind === 'view' ? [arg.view] : arg.kind === 'list' ? arg.items.flatMap(tensorsOf) : []

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
