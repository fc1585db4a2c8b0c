/** The thread behind bus.test.ts: a message bus that says all it has to say at once, whatever it is asked. */
declare const self: Worker;

export interface Script {
  path: string;
  says: Uint8Array;
  /** It says no more after that, and still listens. */
  isDone: boolean;
}

self.onmessage = ({ data: { path, says, isDone } }: MessageEvent<Script>) => {
  const heard: number[] = [];
  const say = (socket: Bun.Socket<{ said: number }>) => {
    for (let count = -1; count !== 0 && socket.data.said < says.length;) {
      socket.data.said += count = socket.write(says.subarray(socket.data.said));
    }
    if (isDone && socket.data.said === says.length) socket.shutdown();
  };
  Bun.listen<{ said: number }>({
    unix: path,
    socket: {
      open(socket) {
        socket.data = { said: 0 };
        say(socket);
      },
      drain: say,
      data: (_, chunk) => void heard.push(...chunk),
      close: () => self.postMessage(new Uint8Array(heard)),
    },
  });
  self.postMessage("ready");
};
