// Device meshes: which ranks lie on a line, by dimension and name, and what is refused. No ranks run: the fake world plays each of them in turn.
import * as fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { nn } from 'tensorfx'
import { destroyProcessGroup, getProcessGroupRanks, initDeviceMesh, initProcessGroup, isInitialized } from 'tensorfx/distributed'
import type { DeviceMesh } from 'tensorfx/distributed'
import { FullyShardedDataParallel, fullyShard } from 'tensorfx/distributed/fsdp'

const leave = (): void => {
  if (isInitialized()) destroyProcessGroup()
}
afterEach(leave)

/** What `of` says of a mesh on each rank. */
async function onRanks<T>(shape: readonly number[], names: readonly string[] | null, of: (mesh: DeviceMesh) => T): Promise<T[]> {
  const worldSize = shape.reduce((a, b) => a * b, 1)
  const found: T[] = []
  for (let rank = 0; rank < worldSize; rank++) {
    leave()
    await initProcessGroup({ backend: 'fake', worldSize, rank })
    found.push(of(initDeviceMesh('cpu', shape, names === null ? {} : { meshDimNames: names })))
  }
  return found
}

describe('initDeviceMesh', () => {
  test('arranges ranks by rows: the ranks of the line along each dimension, and the place in it', async () => {
    const found = await onRanks([2, 3], ['replicate', 'shard'], (mesh) => ({
      columns: getProcessGroupRanks(mesh.getGroup(0)),
      rows: getProcessGroupRanks(mesh.getGroup('shard')),
      place: mesh.getCoordinate(),
    }))
    expect(found).toEqual([
      { columns: [0, 3], rows: [0, 1, 2], place: [0, 0] },
      { columns: [1, 4], rows: [0, 1, 2], place: [0, 1] },
      { columns: [2, 5], rows: [0, 1, 2], place: [0, 2] },
      { columns: [0, 3], rows: [3, 4, 5], place: [1, 0] },
      { columns: [1, 4], rows: [3, 4, 5], place: [1, 1] },
      { columns: [2, 5], rows: [3, 4, 5], place: [1, 2] },
    ])
  })

  test('of any shape: lines along a dimension meet in one rank, whose place names it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 3 }), async (shape) => {
        const found = await onRanks(shape, null, (mesh) => ({
          place: mesh.getCoordinate(),
          lines: mesh.getAllGroups().map((group) => getProcessGroupRanks(group)),
          sizes: [mesh.shape, mesh.ndim, mesh.size(), mesh.size(-1)],
        }))
        found.forEach(({ place, lines, sizes }, rank) => {
          expect(place.reduce((at, index, dim) => at * (shape[dim] ?? 1) + index, 0)).toBe(rank)
          expect(sizes).toEqual([shape, shape.length, found.length, shape.at(-1)])
          lines.forEach((line, dim) => {
            expect(line).toHaveLength(shape[dim] ?? 0)
            expect(line[place[dim] ?? -1]).toBe(rank)
            // All on a line have the same place along every other dimension.
            for (const other of line) expect(found[other]?.place.filter((_, d) => d !== dim)).toEqual(place.filter((_, d) => d !== dim))
          })
        })
      }),
      { numRuns: 20 },
    )
  })

  test('a mesh of some dimensions is taken by name', async () => {
    const found = await onRanks([2, 1, 2], ['a', 'b', 'c'], (mesh) => [
      mesh.get('c').getLocalRank(),
      String(mesh.get('a', 'c')),
      mesh.get('a', 'c').meshDimNames,
    ])
    expect(found).toEqual([0, 1, 0, 1].map((rank) => [rank, 'DeviceMesh(cpu, (a=2, c=2))', ['a', 'c']]))
  })

  test('errors name the argument, its value and what was expected (difference: mesh-of-the-world)', async () => {
    await initProcessGroup({ backend: 'fake', worldSize: 4, rank: 1 })
    const mesh = initDeviceMesh('cpu', [2, 2], { meshDimNames: ['replicate', 'shard'] })
    expect(() => initDeviceMesh('cpu', [2, 3])).toThrow('meshShape must have as many places as there are ranks, 4, got [2, 3], which has 6')
    expect(() => initDeviceMesh('cpu', [])).toThrow('meshShape')
    expect(() => initDeviceMesh('cpu', [4, 0])).toThrow('meshShape')
    expect(() => initDeviceMesh('cuda' as never, [4])).toThrow(/deviceType.*'cuda'/)
    expect(() => initDeviceMesh('cpu', [2, 2], { meshDimNames: ['a'] })).toThrow('mesh_shape and mesh_dim_names should have same length!')
    expect(() => initDeviceMesh('cpu', [2, 2], { meshDimNames: ['a', 'a'] })).toThrow('Each mesh_dim_name must be unique.')
    expect(() => initDeviceMesh('cpu', [2, 2], { names: ['a', 'b'] } as never)).toThrow('names')
    expect(() => mesh.getGroup()).toThrow(
      'this mesh has 2 dimensions, so dim must say which is meant: a number, or one of its names (replicate, shard)',
    )
    expect(() => mesh.getGroup(2)).toThrow('from 0 to 1 or a name (replicate, shard), got 2')
    expect(() => mesh.get('rows')).toThrow("got 'rows'")
    expect(() => mesh.get('shard', 'replicate')).toThrow('names must be in the order of the mesh (replicate, shard), got shard, replicate')
  })
})

describe('deviceMesh of FullyShardedDataParallel and fullyShard', () => {
  test('is refused where it does not fit the strategy, or the ranks are given twice (difference: hybrid-groups)', async () => {
    await initProcessGroup({ backend: 'fake', worldSize: 4, rank: 1 })
    const [grid, line] = [initDeviceMesh('cpu', [2, 2]), initDeviceMesh('cpu', [4])]
    const wrap = (options: object) => () => new FullyShardedDataParallel(new nn.Linear(4, 4), options)
    expect(wrap({ shardingStrategy: 'HYBRID_SHARD', deviceMesh: line })).toThrow('Expected device_mesh to have ndim=2 but got 1')
    expect(wrap({ deviceMesh: grid })).toThrow('FULL_SHARD needs a deviceMesh of one dimension, got DeviceMesh(cpu, (2, 2))')
    expect(wrap({ deviceMesh: line, processGroup: line.getGroup() })).toThrow('Cannot pass both process_group and device_mesh at the same time.')
    expect(wrap({ deviceMesh: [2, 2] })).toThrow('deviceMesh must be what initDeviceMesh returns')
    expect(wrap({ shardingStrategy: 'HYBRID_SHARD' })).toThrow(
      'HYBRID_SHARD needs a deviceMesh of two dimensions, or processGroup: [shard, replicas]',
    )
  })

  test('divides along the last dimension', async () => {
    await initProcessGroup({ backend: 'fake', worldSize: 4, rank: 1 })
    const grid = initDeviceMesh('cpu', [2, 2])
    const hybrid = new FullyShardedDataParallel(new nn.Linear(4, 4), { shardingStrategy: 'HYBRID_SHARD', deviceMesh: grid })
    const full = new FullyShardedDataParallel(new nn.Linear(4, 4), { deviceMesh: initDeviceMesh('cpu', [4]) })
    const inPlace = new nn.Linear(4, 4)
    fullyShard(inPlace, { mesh: grid })
    const sizes = [hybrid, full, inPlace].map((model) =>
      [...model.parameters()].reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0),
    )
    expect(sizes).toEqual([10, 5, 10])
  })
})
