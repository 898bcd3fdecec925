// What this machine offers: the runtime, the engine and its instructions, threads, MPI, memory and caches.
import { availableParallelism, totalmem } from 'node:os'
import { messageOf } from '../../errors/index.ts'
import { compile } from '../../dynamo/index.ts'
import { installCompile } from '../../install/compile.ts'
import { cacheSizes, engineFor, hasRelaxedSimd, hostLimit } from '../../kernels/index.ts'
import { ones, relu } from '../../ops/index.ts'
import { canGenerateCode } from '../../protocol/index.ts'
import { sizeText } from '../../protocol/sizeText.ts'
import type { Tensor } from '../../tensor/index.ts'
import { findLauncher, hasKoffi } from '../run/launcher.ts'
import type { Environment } from './variables.ts'

/** Something that the machine has or lacks. */
export interface Fact {
  readonly name: string
  readonly value: string
  /** Why tensorfx does not work as it should; null if it does. */
  readonly problem: string | null
}

/** The oldest Node that the package supports (`engines` of package.json). */
const OLDEST_NODE = 20

/** Modules with one instruction of a feature each: an engine that lacks it refuses the module. */
const HEADER = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
const TYPE_OF_VECTOR = [1, 5, 1, 0x60, 0, 1, 0x7b, 3, 2, 1, 0]
const PROBES = {
  // i32.const 0, i8x16.splat, i8x16.popcnt
  simd: [...HEADER, ...TYPE_OF_VECTOR, 10, 10, 1, 8, 0, 0x41, 0, 0xfd, 0x0f, 0xfd, 0x62, 0x0b],
  // a shared memory, i32.const 0, i32.atomic.load
  threads: [...HEADER, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 5, 4, 1, 3, 1, 1, 10, 11, 1, 9, 0, 0x41, 0, 0xfe, 0x10, 2, 0, 0x1a, 0x0b],
}

const has = (feature: keyof typeof PROBES): boolean => WebAssembly.validate(Uint8Array.from(PROBES[feature]))

/** Why a small function that is compiled does not compute what it should; null if it does. */
function compilerProblem(): string | null {
  try {
    installCompile()
    const sum = compile((x: Tensor) => relu(x).add(1).sum())(ones([4])).item()
    return sum === 8 ? null : `a compiled function gave ${String(sum)} where 8 was expected.`
  } catch (error) {
    return `a small function cannot be compiled: ${messageOf(error)}`
  }
}

/** The engine that the environment's setting leads to; what is wrong with the text itself is found with the variables. */
function engineFact({ TENSORFX_RELAXED: setting }: Environment): Fact {
  try {
    const wanted = setting === '1' ? true : setting === '0' ? false : 'auto'
    return { name: 'engine', value: `WebAssembly (${engineFor(wanted)})`, problem: null }
  } catch (error) {
    return { name: 'engine', value: 'WebAssembly (wasm)', problem: messageOf(error) }
  }
}

function mpiFact(koffi: boolean, { TENSORFX_MPIRUN: given }: Environment): Fact {
  const launcher = findLauncher(given)
  const value = [
    launcher === null ? 'no mpirun' : `${launcher.command} (${launcher.isOpenMpi ? 'Open MPI' : 'MPICH'})`,
    koffi ? 'koffi' : 'no koffi (npm install koffi)',
    launcher !== null && koffi ? 'ranks are processes' : 'ranks are threads',
  ].join(', ')
  const problem =
    given !== undefined && launcher === null ? `TENSORFX_MPIRUN=${given}: this command cannot be run, so there is no launcher of MPI.` : null
  return { name: 'MPI', value, problem }
}

/** Kernels of tensorfx run in WebAssembly; comparisons run onnxruntime on WebGPU too. */
const webGpuFact = (): Fact => ({
  name: 'WebGPU',
  value: 'gpu' in (globalThis.navigator ?? {}) ? 'yes' : "no (only comparisons with 'onnxruntime:webgpu' need it, in a browser)",
  problem: null,
})

/** Looks at the machine. `memoryLimit` is that of the environment; null if it sets none. */
export async function machineFacts(env: Environment, memoryLimit: number | null): Promise<readonly Fact[]> {
  const { node, v8 } = process.versions
  const hasSimd = has('simd')
  const generates = canGenerateCode()
  const failure = hasSimd ? compilerProblem() : null
  const container = process.constrainedMemory?.() ?? 0
  const isContained = container > 0 && container < totalmem()
  const limit = memoryLimit ?? hostLimit()
  const isOld = Number(node.split('.')[0]) < OLDEST_NODE
  return [
    {
      name: 'Node',
      value: `${node} (V8 ${v8}), ${process.platform}-${process.arch}${process.execArgv.length === 0 ? '' : `, ${process.execArgv.join(' ')}`}`,
      problem: isOld ? `Node ${node} is too old: tensorfx needs ${OLDEST_NODE} or newer.` : null,
    },
    engineFact(env),
    {
      name: 'SIMD',
      value: hasSimd ? 'yes' : 'no',
      problem: hasSimd ? null : 'this engine has no SIMD in WebAssembly, which all kernels use: use a newer one.',
    },
    { name: 'relaxed SIMD', value: hasRelaxedSimd() ? 'yes' : 'no', problem: null },
    {
      name: 'threads',
      value: `${availableParallelism()} cores, SharedArrayBuffer: ${typeof SharedArrayBuffer === 'undefined' ? 'no' : 'yes'}, atomics in WebAssembly: ${has('threads') ? 'yes' : 'no'}`,
      problem: null,
    },
    { name: 'compiler', value: failure === null && hasSimd ? 'works' : 'does not work', problem: failure },
    {
      name: 'generated code',
      value: generates ? 'allowed' : 'not allowed: graphs run node by node or as prepared calls',
      problem: null,
    },
    mpiFact(await hasKoffi(), env),
    webGpuFact(),
    {
      name: 'memory limit',
      value: `${Number.isFinite(limit) ? sizeText(limit) : 'none'}${memoryLimit === null ? '' : ' (TENSORFX_MEMORY_LIMIT)'}; machine ${sizeText(totalmem())}${isContained ? `, container ${sizeText(container)}` : ''}`,
      problem: null,
    },
    {
      name: 'caches',
      value: cacheSizes()
        .map(({ name, limit: most }) => `${name} ${sizeText(most)}`)
        .join(', '),
      problem: null,
    },
  ]
}
