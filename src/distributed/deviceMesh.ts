// Device meshes: the ranks of the world as a grid, with a process group for each line of it. PyTorch's torch.distributed.device_mesh.
import { ArgumentError, InternalError } from '../errors/index.ts'
import { checkArgument, checkCount, checkOptions, valueText } from '../protocol/index.ts'
import { getRank, getWorldSize, newGroup } from './processGroup.ts'
import type { ProcessGroup } from './processGroup.ts'

/** Options of {@link initDeviceMesh}. */
export interface DeviceMeshOptions {
  /** A name for each dimension, by which {@link DeviceMesh.get} and {@link DeviceMesh.getGroup} find it. PyTorch's `mesh_dim_names`. */
  readonly meshDimNames?: readonly string[]
}

/** One dimension of a mesh: its size, its name if it has one, and the ranks of the line along it that this rank is on. */
interface MeshDim {
  readonly size: number
  readonly name: string | null
  readonly group: ProcessGroup
}

/**
 * The ranks as a grid. A rank talks to those that it shares a line with, along each dimension, through a process group. Made by {@link initDeviceMesh}. PyTorch's
 * `DeviceMesh`.
 */
export class DeviceMesh {
  readonly deviceType: 'cpu'
  readonly #dims: readonly MeshDim[]

  /** @internal */
  constructor(deviceType: 'cpu', dims: readonly MeshDim[]) {
    checkCount('DeviceMesh', arguments, 2)
    this.deviceType = deviceType
    this.#dims = dims
  }

  /** The sizes of the dimensions. */
  get shape(): readonly number[] {
    return this.#dims.map(({ size }) => size)
  }

  get ndim(): number {
    return this.#dims.length
  }

  /** The names of the dimensions; null if they have none. PyTorch's `mesh_dim_names`. */
  get meshDimNames(): readonly string[] | null {
    const names = this.#dims.flatMap(({ name }) => (name === null ? [] : [name]))
    return names.length === 0 ? null : names
  }

  /** How many ranks there are along a dimension, or altogether. */
  size(dim?: number | string): number {
    return dim === undefined ? this.#dims.reduce((product, { size }) => product * size, 1) : this.#dim('size', dim).size
  }

  /** The ranks of this rank's line along a dimension. Default: the only one. PyTorch's `get_group`. */
  getGroup(dim?: number | string): ProcessGroup {
    return this.#dim('getGroup', dim).group
  }

  /** The groups of all dimensions. PyTorch's `get_all_groups`. */
  getAllGroups(): readonly ProcessGroup[] {
    return this.#dims.map(({ group }) => group)
  }

  /** This rank's place along a dimension. Default: the only one. PyTorch's `get_local_rank`. */
  getLocalRank(dim?: number | string): number {
    return this.#dim('getLocalRank', dim).group.rank
  }

  /** This rank's places along all dimensions. PyTorch's `get_coordinate`. */
  getCoordinate(): readonly number[] {
    return this.#dims.map(({ group }) => group.rank)
  }

  /**
   * The mesh of some dimensions, by name, in the order of this mesh: `mesh.get('shard')`. PyTorch's `mesh["shard"]`.
   *
   * @throws ArgumentError for a name that no dimension has, and for names out of order.
   */
  get(...names: readonly string[]): DeviceMesh {
    checkArgument(names.length > 0, 'DeviceMesh.get', 'names', 'at least one name of a dimension', names)
    const places = names.map((name) => this.#dims.indexOf(this.#dim('get', name)))
    if (places.some((place, i) => i > 0 && place <= (places[i - 1] ?? 0)))
      throw new ArgumentError(
        `DeviceMesh.get: names must be in the order of the mesh (${this.meshDimNames?.join(', ')}), got ${names.join(', ')}. A mesh of some dimensions keeps their order.`,
      )
    return new DeviceMesh(
      this.deviceType,
      this.#dims.filter((_, i) => places.includes(i)),
    )
  }

  #dim(method: string, which: number | string | undefined): MeshDim {
    if (which === undefined && this.ndim !== 1)
      throw new ArgumentError(
        `DeviceMesh.${method}: this mesh has ${this.ndim} dimensions, so dim must say which is meant: a number, or one of its names (${this.meshDimNames?.join(', ') ?? 'it has none'}).`,
      )
    const index = which ?? 0
    const at = typeof index === 'number' && index < 0 ? index + this.ndim : index
    const dim = typeof at === 'number' ? this.#dims[at] : this.#dims.find(({ name }) => name !== null && name === at)
    if (dim !== undefined) return dim
    throw new ArgumentError(
      `DeviceMesh.${method}: dim must be a dimension of the mesh, from 0 to ${this.ndim - 1} or a name (${this.meshDimNames?.join(', ') ?? 'it has none'}), got ${valueText(which)}.`,
    )
  }

  toString(): string {
    const text = this.#dims.map(({ name, size }) => (name === null ? String(size) : `${name}=${size}`))
    return `DeviceMesh(${this.deviceType}, (${text.join(', ')}))`
  }
}

const WHERE = 'initDeviceMesh'

const isSize = (value: unknown): value is number => typeof value === 'number' && Number.isSafeInteger(value) && value > 0

/** The ranks of all lines along a dimension of a grid of the given shape, in which the last dimension runs fastest. */
function linesAlong(shape: readonly number[], dim: number): readonly (readonly number[])[] {
  const total = shape.reduce((a, b) => a * b, 1)
  const stride = shape.slice(dim + 1).reduce((a, b) => a * b, 1)
  const size = shape[dim] ?? 1
  return Array.from({ length: total }, (_, rank) => rank)
    .filter((rank) => Math.floor(rank / stride) % size === 0)
    .map((first) => Array.from({ length: size }, (_, i) => first + i * stride))
}

/**
 * Arranges all ranks of the world as a grid, the last dimension fastest: `[2, 2]` has the rows 0, 1 and 2, 3. Every rank calls it. For hybrid sharding the first
 * dimension counts the copies, and the second divides each. PyTorch's `init_device_mesh`.
 *
 * @throws ArgumentError unless the sizes multiply to the world size, and for names that repeat or do not match the sizes in number.
 * @example
 * const deviceMesh = initDeviceMesh('cpu', [2, 2], { meshDimNames: ['replicate', 'shard'] })
 * const model = new FullyShardedDataParallel(new Net(), { shardingStrategy: 'HYBRID_SHARD', deviceMesh })
 */
export function initDeviceMesh(deviceType: 'cpu', meshShape: readonly number[], options: DeviceMeshOptions = {}): DeviceMesh {
  checkCount('initDeviceMesh', arguments, 3)
  checkOptions(WHERE, options, { meshDimNames: true })
  checkArgument(deviceType === 'cpu', WHERE, 'deviceType', "'cpu', the only one there is", deviceType)
  checkArgument(
    Array.isArray(meshShape) && meshShape.length > 0 && meshShape.every(isSize),
    WHERE,
    'meshShape',
    'a list of positive integers',
    meshShape,
  )
  const { meshDimNames } = options
  if (meshDimNames !== undefined) {
    checkArgument(
      Array.isArray(meshDimNames) && meshDimNames.every((name: unknown) => typeof name === 'string' && name !== ''),
      WHERE,
      'meshDimNames',
      'a list of names',
      meshDimNames,
    )
    if (new Set(meshDimNames).size < meshDimNames.length)
      throw new ArgumentError(
        `${WHERE}: Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names ${valueText(meshDimNames)}`,
      )
    if (meshDimNames.length !== meshShape.length)
      throw new ArgumentError(
        `${WHERE}: mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): ${meshDimNames.length} and len(mesh_shape):${meshShape.length}.`,
      )
  }
  const [world, total] = [getWorldSize(), meshShape.reduce((a, b) => a * b, 1)]
  if (total !== world)
    throw new ArgumentError(
      `${WHERE}: meshShape must have as many places as there are ranks, ${world}, got ${valueText(meshShape)}, which has ${total}. For some of the ranks make groups with newGroup.`,
    )
  const dims = meshShape.map((size, dim): MeshDim => {
    // All ranks make the groups of all lines, in the same order; each is on one of them.
    const [own] = linesAlong(meshShape, dim).flatMap((ranks) => newGroup(ranks) ?? [])
    if (own === undefined) throw new InternalError(`rank ${getRank()} is on no line along dimension ${dim} of a mesh [${meshShape.join(', ')}]`)
    return { size, name: meshDimNames?.[dim] ?? null, group: own }
  })
  return new DeviceMesh(deviceType, dims)
}
