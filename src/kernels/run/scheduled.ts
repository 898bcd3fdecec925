// Schedules as kernels that can be called: the schedule's first tile for the engine of this process.
import type { CompiledKernel } from './boundedCache.ts'
import { compileKernel, scratchOfBoth } from './compile.ts'
import type { KernelSource } from './compile.ts'
import { currentComputing } from '../engine/computing.ts'
import type { Computing } from '../engine/computing.ts'
import { currentEngine } from '../engine/engine.ts'
import type { TileEngine } from '../engine/engine.ts'
import { machineEngine } from '../engine/machineCode.ts'
import { KernelError } from '../ir/errors.ts'
import type { BufferParam, Kernel } from '../ir/loopIr.ts'
import type { Schedule } from '../schedules/schedule.ts'
import { scratchBytes } from '../ir/scratchLayout.ts'

/** A compiled kernel, and the bytes of scratch memory that its last argument must point to. */
export interface ScheduledKernel {
  readonly compiled: CompiledKernel
  readonly scratchBytes: number
  /** What runs instead where there is no room for the scratch memory: a kernel with the same operands that needs less. */
  readonly spare?: SpareKernel
  /** What runs instead where an operand was packed before. */
  readonly packed?: PackedKernel | null
}

/** A kernel that is compiled when it is first needed, and the scratch memory that it will take. */
export interface SpareKernel extends KernelSource {
  readonly scratchBytes: number
  /** How it is to compute. */
  readonly computing: Computing
}

/** The same kernel where an operand was packed before. */
export interface PackedKernel {
  /** The operand. Its parameter of `run` points to the packed elements. */
  readonly operand: BufferParam
  /** What these take, and what packing needs beside them. */
  readonly bytes: number
  readonly source: () => PackedSource
  /** How it is to compute. */
  readonly computing: Computing
}

/** What a kernel with a packed operand is compiled from. */
export interface PackedSource {
  readonly kernel: Kernel
  /** Packs: takes the address of the operand, that of the packed elements, and, where `scratchAt` is a number, an address that many bytes further. */
  readonly pack: Kernel
  readonly scratchAt: number | null
}

/** A kernel with a packed operand, compiled, and what packs: from one address to another. */
export interface CompiledPacked {
  readonly pack: (from: number, to: number) => void
  readonly kernel: CompiledKernel
}

/** Compiles it. */
export function compilePackedSource({ kernel, pack, scratchAt }: PackedSource): CompiledPacked {
  const { run } = compileKernel(pack)
  return { pack: scratchAt === null ? (from, to) => run(from, to) : (from, to) => run(from, to, to + scratchAt), kernel: compileKernel(kernel) }
}

/** The kernel of a schedule for a problem that it takes. A kernel with the same text is compiled only once. */
export const compileScheduled = <Problem, Spec, Tile>(schedule: Schedule<Problem, Spec, Tile>, problem: Problem): CompiledKernel =>
  compileKernel(kernelOf(schedule, problem), () => inWideTiles(schedule, problem))

/** A kernel whose tiles depend on the engine, in those of this process and in those of machine code. */
export const compileInTiles = (build: (engine: TileEngine) => Kernel): CompiledKernel =>
  compileKernel(build(currentEngine()), () => {
    const engine = machineEngine()
    return engine === null ? null : build(engine)
  })

/** The same, compiled when it is needed. */
export function spareOf<Problem, Spec, Tile>(schedule: Schedule<Problem, Spec, Tile>, problem: Problem): SpareKernel {
  const kernel = kernelOf(schedule, problem)
  const wide = inWideTiles(schedule, problem)
  const scratchBytes = knownScratchBytes({ kernel: { ...kernel, scratch: scratchOfBoth(kernel, wide) } })
  return { kernel, wide, scratchBytes, computing: currentComputing() }
}

/** The kernel in the tiles of machine code; null where none is compiled, or these are the same. */
function inWideTiles<Problem, Spec, Tile>(schedule: Schedule<Problem, Spec, Tile>, problem: Problem): Kernel | null {
  const engine = machineEngine()
  if (engine === null) return null
  const [wide, usual] = [schedule.tiles(engine)[0], schedule.tiles(currentEngine())[0]]
  return JSON.stringify(wide) === JSON.stringify(usual) ? null : kernelOf(schedule, problem, engine)
}

function kernelOf<Problem, Spec, Tile>(schedule: Schedule<Problem, Spec, Tile>, problem: Problem, engine: TileEngine = currentEngine()): Kernel {
  const [tile] = schedule.tiles(engine)
  if (tile === undefined || !schedule.match(problem)) throw new KernelError(`the schedule ${schedule.name} does not take this problem`)
  return schedule.build(schedule.spec(problem), tile)
}

/** The bytes of scratch memory that a kernel needs, whose sizes are known. Throws KernelError if one is not. */
export const knownScratchBytes = ({ kernel }: Pick<CompiledKernel, 'kernel'>): number =>
  scratchBytes(kernel, ({ name }) => {
    throw new KernelError(`the size ${name} of the scratch memory of ${kernel.name} must be known`)
  })
