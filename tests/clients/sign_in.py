#!/usr/bin/env python3
"""sign_in.py NAME PASSWORD URL CHROMIUM OPTION...: opens the page and, where the proxy asks who is there, gives the
answer that a person would type into the dialog, once.

Chromium takes no password with --proxy-server and shows its dialog to nobody without a screen. Whoever drives it by the
DevTools protocol is asked in the dialog's place; what goes over the wire is the same. The protocol is spoken over two pipes
(--remote-debugging-pipe): messages are JSON, each with a zero byte behind it.

Prints JSON: the challenges as they came (source, scheme, realm, origin), the page's status, its text, and how many of its
pictures have arrived.
"""
import json
import os
import signal
import subprocess
import sys

name, password, url, *command = sys.argv[1:]
signal.alarm(60)  # whatever goes wrong, this ends, and Chromium with it: its pipe breaks

to_browser, from_here = os.pipe()
from_browser, to_here = os.pipe()


def take_pipes():
    ours = [os.dup(to_browser), os.dup(to_here)]  # neither is 3 or 4, which are about to be replaced
    os.dup2(ours[0], 3)
    os.dup2(ours[1], 4)


chromium = subprocess.Popen(command + ['--remote-debugging-pipe', 'about:blank'], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, pass_fds=(3, 4), preexec_fn=take_pipes)
os.close(to_browser)
os.close(to_here)

last = 0


def send(method, **parameters):
    global last
    last += 1
    message = {'id': last, 'method': method, 'params': parameters}
    if session:
        message['sessionId'] = session
    os.write(from_here, json.dumps(message).encode() + b'\0')
    return last


def messages():
    pending = b''
    while True:
        some = os.read(from_browser, 65536)
        if not some:
            sys.exit('Chromium ended')
        *whole, pending = (pending + some).split(b'\0')
        for one in whole:
            yield json.loads(one)


incoming = messages()
said = {'challenges': [], 'status': 0}
answered = set()


def handle(event):
    method, of = event.get('method'), event.get('params', {})
    if method == 'Fetch.requestPaused':
        send('Fetch.continueRequest', requestId=of['requestId'])
    elif method == 'Fetch.authRequired':
        challenge = of['authChallenge']
        said['challenges'].append(challenge)
        again = of['requestId'] in answered or not name
        answered.add(of['requestId'])
        send('Fetch.continueWithAuth', requestId=of['requestId'], authChallengeResponse=(
            {'response': 'CancelAuth'} if again else
            {'response': 'ProvideCredentials', 'username': name, 'password': password}))
    elif method == 'Network.responseReceived' and of['type'] == 'Document':
        said['status'] = of['response']['status']


def until(wanted):
    for event in incoming:
        handle(event)
        if wanted(event):
            return event
    return None


def call(method, **parameters):
    number = send(method, **parameters)
    answer = until(lambda event: event.get('id') == number)
    if 'error' in answer:
        sys.exit(f'{method}: {answer["error"]}')
    return answer['result']


session = ''
target = next(one for one in call('Target.getTargets')['targetInfos'] if one['type'] == 'page')
session = call('Target.attachToTarget', targetId=target['targetId'], flatten=True)['sessionId']
call('Network.enable')
call('Page.enable')
call('Fetch.enable', handleAuthRequests=True)
number = send('Page.navigate', url=url)
until(lambda event: event.get('method') == 'Page.loadEventFired')
said.update(json.loads(call('Runtime.evaluate', expression='''JSON.stringify({
    text: document.body.innerText,
    pictures: [...document.images].filter((one) => one.complete && one.naturalWidth > 0).length })''')['result']['value']))
print(json.dumps(said))
session = ''
send('Browser.close')
chromium.wait()
