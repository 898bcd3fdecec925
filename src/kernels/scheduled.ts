// Schedules as kernels that can be called: the schedule's first tile for the engine of this process.
import type { CompiledKernel } from './boundedCache.ts'
import { compileKernel } from './compile.ts'
import { currentEngine } from './engine.ts'
import { KernelError } from './errors.ts'
import type { Kernel } from './loopIr.ts'
import type { Schedule } from './schedules/schedule.ts'
import { scratchBytes } from './scratchLayout.ts'
import type { SpareKernel } from './templates/template.ts'

/** The kernel of a schedule for a problem that it takes. A kernel with the same text is compiled only once. */
export const compileScheduled = <Problem, Spec, Tile>(schedule: Schedule<Problem, Spec, Tile>, problem: Problem): CompiledKernel =>
  compileKernel(kernelOf(schedule, problem))

/** The same, compiled when it is needed. */
export function spareOf<Problem, Spec, Tile>(schedule: Schedule<Problem, Spec, Tile>, problem: Problem): SpareKernel {
  const kernel = kernelOf(schedule, problem)
  return { scratchBytes: knownScratchBytes({ kernel }), compile: () => compileKernel(kernel) }
}

function kernelOf<Problem, Spec, Tile>(schedule: Schedule<Problem, Spec, Tile>, problem: Problem): Kernel {
  const [tile] = schedule.tiles(currentEngine())
  if (tile === undefined || !schedule.match(problem)) throw new KernelError(`the schedule ${schedule.name} does not take this problem`)
  return schedule.build(schedule.spec(problem), tile)
}

/** The bytes of scratch memory that a kernel needs, whose sizes are known. */
export const knownScratchBytes = ({ kernel }: Pick<CompiledKernel, 'kernel'>): number =>
  scratchBytes(kernel, ({ name }) => {
    throw new KernelError(`the size ${name} of the scratch memory of ${kernel.name} must be known`)
  })
