// The register tiles of machine code, by how many floats its vectors have: as many sums as the registers hold beside what is added to them. WebAssembly has its own, in each schedule.
import { widestEngine } from '../engine/engine.ts'
import type { TileEngine } from '../engine/engine.ts'

interface MachineTiles {
  /** Of a product of matrices, and of those of Winograd's algorithms. */
  readonly product: { readonly rows: number; readonly columns: number }
  /** Of a direct convolution: the columns in lanes, and the features for two vectors of them and for one. Weights are read where they lie. */
  readonly convolution: { readonly quad: number; readonly rows: number; readonly rowsOfQuad: number; readonly packsWeights: false }
  /** Of the gradient of a convolution's weight: features by channels, and the channels that are transformed in lanes. */
  readonly weight: { readonly rows: number; readonly columns: number; readonly lanes: number }
  /** Query rows of a product of attention. */
  readonly attention: { readonly rows: number }
}

const tiles: Readonly<Partial<Record<TileEngine, MachineTiles>>> = {
  native16: {
    product: { rows: 8, columns: 32 },
    convolution: { quad: 16, rows: 8, rowsOfQuad: 16, packsWeights: false },
    weight: { rows: 8, columns: 32, lanes: 16 },
    attention: { rows: 8 },
  },
  native8: {
    product: { rows: 6, columns: 16 },
    convolution: { quad: 8, rows: 6, rowsOfQuad: 12, packsWeights: false },
    weight: { rows: 4, columns: 16, lanes: 8 },
    attention: { rows: 8 },
  },
  native4: {
    product: { rows: 6, columns: 16 },
    convolution: { quad: 4, rows: 8, rowsOfQuad: 16, packsWeights: false },
    weight: { rows: 4, columns: 16, lanes: 4 },
    attention: { rows: 8 },
  },
}

/** The tiles of an engine; none for WebAssembly. */
export const machineTiles = (engine: TileEngine): Partial<MachineTiles> => tiles[engine] ?? {}

/** The columns of the widest tile of products that there is now, given those of WebAssembly: memory is packed for it. */
export const widestColumns = (columns: number): number => machineTiles(widestEngine()).product?.columns ?? columns
