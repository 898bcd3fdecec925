// torch.nn.functional: every operator of that namespace, under PyTorch's name.
export * from '../generated/functional.ts'
