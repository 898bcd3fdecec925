// Finds the MPI library of this process, and its functions and handles. Open MPI's handles are addresses of global variables, those of MPICH and its relatives are
// 32-bit numbers.
import { messageOf } from '../../errors/index.ts'
import { environmentVariable } from '../../protocol/index.ts'
import type { BackendReduceOp } from '../collective.ts'
import { DistributedError } from '../errors.ts'
import type { ReadProcess } from './directMemory.ts'

/** The part of koffi that is used. */
interface Koffi {
  /** null: the functions of this process. */
  load(path: string | null, options?: { readonly lazy: boolean; readonly global: boolean }): Library
  address(value: unknown): bigint
  view(address: number, bytes: number): ArrayBuffer
  config(options: { readonly async_stack_size: number }): unknown
}

interface Library {
  func(name: string, result: string, args: readonly string[]): MpiCall
  symbol(name: string): unknown
}

/** A communicator, a datatype, an operator. */
export type Handle = number

/** The element types that MPI reduces. */
export type MpiType = 'byte' | 'int8' | 'uint8' | 'int16' | 'int32' | 'int64' | 'float32' | 'float64'

const LIBRARIES = ['libmpi.so.40', 'libmpi.so', 'libmpich.so.12', 'libmpi.dylib', 'msmpi.dll']

/** What differs between the two families. */
interface Flavour {
  readonly world: Handle
  readonly types: Readonly<Record<MpiType, Handle>>
  readonly ops: Readonly<Record<BackendReduceOp, Handle>>
  readonly errorsReturn: Handle
  readonly noInfo: Handle
  /** MPI_COMM_TYPE_SHARED: ranks that can share memory. */
  readonly typeShared: number
  readonly inPlace: number | bigint
  readonly ignoreStatus: number
  readonly anySource: number
  /** Where a status holds the sender, in 32-bit words. */
  readonly statusSource: number
  /** Whether handles are as wide as pointers. */
  readonly wide: boolean
}

function openMpi(koffi: Koffi, library: Library): Flavour {
  // As numbers, which koffi takes faster than bigints.
  const at = (name: string): number => Number(koffi.address(library.symbol(`ompi_mpi_${name}`)))
  return {
    world: at('comm_world'),
    types: {
      byte: at('byte'),
      int8: at('int8_t'),
      uint8: at('uint8_t'),
      int16: at('int16_t'),
      int32: at('int32_t'),
      int64: at('int64_t'),
      float32: at('float'),
      float64: at('double'),
    },
    ops: {
      sum: at('op_sum'),
      product: at('op_prod'),
      min: at('op_min'),
      max: at('op_max'),
      band: at('op_band'),
      bor: at('op_bor'),
      bxor: at('op_bxor'),
    },
    errorsReturn: at('errors_return'),
    noInfo: at('info_null'),
    typeShared: 0,
    inPlace: 1,
    ignoreStatus: 0,
    anySource: -1,
    statusSource: 0,
    wide: true,
  }
}

/** MPICH's ABI, which Intel MPI, MVAPICH and Cray MPI share. */
const MPICH: Flavour = {
  world: 0x44000000,
  types: {
    byte: 0x4c00010d,
    int8: 0x4c000137,
    uint8: 0x4c00013b,
    int16: 0x4c000238,
    int32: 0x4c000439,
    int64: 0x4c00083a,
    float32: 0x4c00040a,
    float64: 0x4c00080b,
  },
  ops: { max: 0x58000001, min: 0x58000002, sum: 0x58000003, product: 0x58000004, band: 0x58000006, bor: 0x58000008, bxor: 0x5800000a },
  errorsReturn: 0x54000001,
  noInfo: 0x1c000000,
  typeShared: 1,
  inPlace: 2n ** 64n - 1n,
  ignoreStatus: 1,
  anySource: -2,
  statusSource: 2,
  wide: false,
}

/** The functions that are used: their arguments, with H for handles, P for typed arrays and A for addresses as numbers. All return an error code. */
const FUNCTIONS = {
  MPI_Initialized: 'P',
  MPI_Init_thread: 'P P int P',
  MPI_Finalize: '',
  MPI_Abort: 'H int',
  MPI_Comm_set_errhandler: 'H H',
  MPI_Comm_rank: 'H P',
  MPI_Comm_size: 'H P',
  MPI_Comm_split: 'H int int P',
  MPI_Comm_split_type: 'H int int H P',
  MPI_Comm_free: 'P',
  MPI_Win_allocate_shared: 'A int H H P P',
  MPI_Win_shared_query: 'H int P P P',
  MPI_Win_free: 'P',
  MPI_Allreduce: 'A P int H H H',
  MPI_Error_string: 'int P P',
  MPI_Test: 'A A A',
  MPI_Iprobe: 'int int H P P',
  MPI_Iallreduce: 'A A int H H H A',
  MPI_Ireduce: 'A A int H H int H A',
  MPI_Ibcast: 'A int H int H A',
  MPI_Iallgather: 'A int H A int H H A',
  MPI_Igather: 'A int H A int H int H A',
  MPI_Iscatter: 'A int H A int H int H A',
  MPI_Ireduce_scatter_block: 'A A int H H H A',
  MPI_Ialltoallv: 'A A A H A A A H H A',
  MPI_Ibarrier: 'H A',
  MPI_Isend: 'A int H int int H A',
  MPI_Irecv: 'A int H int int H A',
} as const
export type MpiFunction = keyof typeof FUNCTIONS

/** One of MPI's functions as koffi makes it. Returns an error code. */
export type MpiCall = (...args: readonly unknown[]) => unknown

/** MPI as this process has it. */
export interface Mpi extends Flavour {
  /** Calls a function. Throws DistributedError with MPI's own text if it fails. */
  call(name: MpiFunction, ...args: readonly unknown[]): void
  /** The function itself, for calls that must be fast; {@link Mpi.check} takes what it returns. */
  prepare(name: MpiFunction): MpiCall
  /** Throws DistributedError with MPI's own text unless a function has returned 0. */
  check(name: MpiFunction, code: unknown): void
  /** The address of a buffer's first byte. */
  addressOf(buffer: ArrayBufferLike): number
  /** Memory for one handle, holding `value`. */
  cell(value: Handle): BigInt64Array | Int32Array
  /** The memory at an address. */
  memoryAt(address: number, bytes: number): ArrayBuffer
  /** Null on systems without `process_vm_readv`. */
  readonly readProcess: ReadProcess | null
  /** Lets other processes run that wait for this one's core, as Open MPI does where ranks share cores. No effect on systems without `sched_yield`. */
  yield(): void
  readonly file: string
}

/** MPICH's reductions overflow the stacks that koffi gives to its threads. */
const STACK_BYTES = 4 * 2 ** 20

async function loadKoffi(): Promise<Koffi> {
  // Not a literal: bundlers must not follow it.
  const name = 'koffi'
  try {
    const module: { readonly default: Koffi } = await import(/* @vite-ignore */ name)
    return module.default
  } catch (error) {
    throw new DistributedError('MPI is called through the package koffi, which cannot be loaded here. Install it: npm install koffi.', {
      cause: error,
    })
  }
}

function findLibrary(koffi: Koffi): readonly [Library, string] {
  const given = environmentVariable('TENSORFX_MPI_LIBRARY')
  const failures: string[] = []
  for (const file of given === undefined ? LIBRARIES : [given]) {
    try {
      return [koffi.load(file, { lazy: true, global: true }), file]
    } catch (error) {
      failures.push(messageOf(error))
    }
  }
  throw new DistributedError(
    `no MPI library could be loaded (${failures.join('; ')}). Install Open MPI or MPICH, or set TENSORFX_MPI_LIBRARY to the file of its library.`,
  )
}

function yieldOf(koffi: Koffi): () => void {
  try {
    return koffi.load(null).func('sched_yield', 'int', [])
  } catch {
    return () => undefined
  }
}

function readProcessOf(koffi: Koffi): ReadProcess | null {
  try {
    const read = koffi.load(null).func('process_vm_readv', 'long', ['int', 'uintptr_t', 'ulong', 'uintptr_t', 'ulong', 'ulong'])
    // Two ranges, each an address and a length of 64 bits.
    const words = new Uint32Array(16)
    const at = Number(koffi.address(words.buffer))
    const write = (index: number, value: number): void => {
      words[index] = value % 2 ** 32
      words[index + 1] = Math.floor(value / 2 ** 32)
    }
    return (pid, to, from, bytes) => {
      for (const [index, value] of [to, bytes, from, bytes].entries()) write(2 * index, value)
      return Number(read(pid, at, 1, at + 16, 1, 0))
    }
  } catch {
    return null
  }
}

const hasSymbol = (library: Library, name: string): boolean => {
  try {
    library.symbol(name)
    return true
  } catch {
    return false
  }
}

/** Loads MPI. Throws DistributedError if there is none. */
export async function loadMpi(): Promise<Mpi> {
  const koffi = await loadKoffi()
  koffi.config({ async_stack_size: STACK_BYTES })
  const [library, file] = findLibrary(koffi)
  const flavour = hasSymbol(library, 'ompi_mpi_comm_world') ? openMpi(koffi, library) : MPICH
  const kinds: Readonly<Record<string, string>> = { H: flavour.wide ? 'uintptr_t' : 'int', P: 'void*', A: 'uintptr_t', int: 'int' }
  const loaded = new Map<string, MpiCall>()
  const prepare = (name: MpiFunction): MpiCall => {
    let fn = loaded.get(name)
    if (fn === undefined) {
      const args = FUNCTIONS[name].split(' ').filter((kind) => kind !== '')
      fn = library.func(
        name,
        'int',
        args.map((kind) => kinds[kind] ?? kind),
      )
      loaded.set(name, fn)
    }
    return fn
  }
  const textOf = (code: unknown): string => {
    const text = new Uint8Array(1024)
    const length = new Int32Array(1)
    prepare('MPI_Error_string')(code, text, length)
    return new TextDecoder().decode(text.subarray(0, length[0]))
  }
  const check = (name: MpiFunction, code: unknown): void => {
    if (code !== 0) throw new DistributedError(`${name} failed: ${textOf(code)}`)
  }
  return {
    ...flavour,
    file,
    prepare,
    check,
    readProcess: readProcessOf(koffi),
    yield: yieldOf(koffi),
    call: (name, ...args) => check(name, prepare(name)(...args)),
    addressOf: (buffer) => Number(koffi.address(buffer)),
    cell: (value) => (flavour.wide ? BigInt64Array.of(BigInt(value)) : Int32Array.of(value)),
    memoryAt: (address, bytes) => koffi.view(address, bytes),
  }
}
