// The ends of the names of files that torch.save writes.
export const TORCH_FILES: readonly string[] = ['.pt', '.pth', '.bin']
